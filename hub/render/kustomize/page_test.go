// SPDX-License-Identifier: Apache-2.0

package kustomize_test

import (
	"os"
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTheExampleOfThePageIsBuilt(t *testing.T) {
	page, err := os.ReadFile("../../../docs/spec/content.md")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile("(?s)```text\n(-- base/kustomization.yaml --\n.*?)```").FindSubmatch(page)
	if found == nil {
		t.Fatal("docs/spec/content.md has no example of a kustomization")
	}
	objects, err := build(t, tree(string(found[1])), "prod")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"Deployment /prod-shop"}, keys(objects)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
