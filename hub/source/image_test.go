// SPDX-License-Identifier: Apache-2.0

package source_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"kumodo.io/convoy/hub/source"
	"kumodo.io/convoy/hub/source/registrytest"
)

// pushImage gives an image a tag and returns its digest.
func pushImage(t *testing.T, r *registrytest.Registry, text string) string {
	t.Helper()
	layer := r.Blob(ocispec.MediaTypeImageLayerGzip, []byte(text), nil)
	return r.Push(t, "team/app", "1.0", registrytest.Manifest(layer)).Digest.String()
}

func TestAnImageIsLookedUpOnceForARevisionOfTheSource(t *testing.T) {
	r := registrytest.New(t, true)
	first := pushImage(t, r, "one")
	w := newWorld(t)
	ask := func(revision string) string {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		digest, err := w.Image(ctx, source.ImageWant{Namespace: "team", Reference: r.Host() + "/team/app:1.0", Revision: revision})
		if err != nil {
			t.Fatal(err)
		}
		return digest
	}
	var together sync.WaitGroup
	for range 20 {
		together.Go(func() {
			if got := ask("a"); got != first {
				t.Errorf("got %s, want %s", got, first)
			}
		})
	}
	together.Wait()
	asked := len(r.Requests())
	second := pushImage(t, r, "two")
	if got := ask("a"); got != first || len(r.Requests()) != asked {
		t.Errorf("the same revision has %s after a push, and the registry was asked %d times more", got, len(r.Requests())-asked)
	}
	if got := ask("b"); got != second {
		t.Errorf("another revision has %s, want what the tag leads to now", got)
	}

	// A hub that starts again remembers, whatever a crash left at the end of the file.
	w.stop()
	name := filepath.Join(w.options.CacheDir, "images")
	file, err := os.OpenFile(name, os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := file.WriteString("0123 sha256:cut\n" + strings.Repeat("x", 100_000)); err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	asked = len(r.Requests())
	w.start(t)
	if got := ask("a"); got != first || len(r.Requests()) != asked {
		t.Errorf("after a restart: %s, %d questions", got, len(r.Requests())-asked)
	}
}

func TestAnImageThatIsPinnedIsNotLookedUp(t *testing.T) {
	w := newWorld(t)
	want := "sha256:" + strings.Repeat("ab", 32)
	digest, err := w.Image(t.Context(), source.ImageWant{Namespace: "team", Reference: "nobody.invalid/app:1.0@" + want})
	if err != nil || digest != want {
		t.Errorf("got %s, %v", digest, err)
	}
}

func TestTheSecretsOfImagesHaveToBeChecked(t *testing.T) {
	w := newWorld(t)
	w.secrets.set("pull", ".dockerconfigjson", `{"auths":{}}`)
	_, err := w.Image(t.Context(), source.ImageWant{Namespace: "team", Reference: "nobody.invalid/app:1.0", Secrets: []string{"pull"}})
	if err == nil || !strings.Contains(err.Error(), "was not checked") {
		t.Errorf("got %v, want that the use of the Secret was not checked", err)
	}
}
