// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"
)

func TestAPreviewThatIsNotTheApplicationEndsTheStory(t *testing.T) {
	const whole = "namespace/shop\ncustomresourcedefinition.apiextensions.k8s.io/offers.shop.example.com\nconfigmap/web -n shop\nservice/web -n shop\ndeployment.apps/web -n shop\noffer.shop.example.com/breakfast -n shop\n"
	for name, test := range map[string]struct {
		names string
		want  error
	}{
		"all of it":         {whole, nil},
		"nothing":           {"", errPreview},
		"less":              {strings.Replace(whole, "service/web -n shop\n", "", 1), errPreview},
		"more":              {whole + "secret/web -n shop\n", errPreview},
		"something else":    {strings.Replace(whole, "service/web", "service/api", 1), errPreview},
		"another namespace": {strings.Replace(whole, "service/web -n shop", "service/web -n team-a", 1), errPreview},
		"one of them twice": {strings.Replace(whole, "service/web", "configmap/web", 1), errPreview},
	} {
		t.Run(name, func(t *testing.T) {
			if err := checkPreview(test.names); !errors.Is(err, test.want) {
				t.Errorf("got %v, want %v", err, test.want)
			}
		})
	}
}

func TestTheFarewellSaysHowToAskForAPreview(t *testing.T) {
	var told strings.Builder
	if err := (&stage{dir: filepath.Join(t.TempDir(), folder)}).farewell(newVoice(&told)); err != nil {
		t.Fatal(err)
	}
	if want := "kubectl convoy --context hub -n team-a preview shop-edge-1\n"; !strings.Contains(told.String(), want) {
		t.Errorf("it does not say %q: %s", want, &told)
	}
}
