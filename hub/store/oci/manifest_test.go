// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"
)

// A registry that writes a blob once more, since somebody else puts it too, may not know it
// for a moment. No real one can be made to do so when a test wants it.
func TestAManifestIsPutAgainWhenTheRegistryDoesNotKnowItsBlobsForAMoment(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		refusals, puts int
		fails          bool
	}{
		"known at once":                    {0, 1, false},
		"known at the third":               {2, 3, false},
		"a registry that never knows them": {1000, maxUnknown, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			puts := 0
			registry := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodHead {
					w.Header().Set("Docker-Content-Digest", r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:])
					w.Header().Set("Content-Length", "2")
					return
				}
				puts++
				text, err := io.ReadAll(r.Body)
				if err != nil {
					t.Error(err)
				}
				if puts <= test.refusals {
					w.WriteHeader(http.StatusBadRequest)
					if _, err := io.WriteString(w, `{"errors":[{"code":"MANIFEST_BLOB_UNKNOWN","message":"blob unknown to registry"}]}`); err != nil {
						t.Error(err)
					}
					return
				}
				w.Header().Set("Docker-Content-Digest", digest.FromBytes(text).String())
				w.WriteHeader(http.StatusCreated)
			}))
			t.Cleanup(registry.Close)
			b, err := New(Options{URL: "oci://" + strings.TrimPrefix(registry.URL, "http://") + "/renders", PlainHTTP: true, Dir: t.TempDir()})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(b.Close)
			_, err = b.push(t.Context(), "sealed-1", layerOf(folderSealed, digest.FromString("x"), 1), time.Unix(0, 0), false)
			if puts != test.puts || unknown(err) != test.fails || !test.fails && err != nil {
				t.Errorf("%d puts and %v, want %d", puts, err, test.puts)
			}
			ended, cancel := context.WithCancel(t.Context())
			cancel()
			if _, err := b.push(ended, "sealed-1", layerOf(folderSealed, digest.FromString("x"), 1), time.Unix(0, 0), false); !errors.Is(err, context.Canceled) {
				t.Errorf("a put whose context has ended gave %v", err)
			}
		})
	}
}
