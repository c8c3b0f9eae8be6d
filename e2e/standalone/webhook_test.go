// SPDX-License-Identifier: Apache-2.0

package standalone_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"kumodo.io/convoy/e2e/install"
)

const hookToken = "the key of the test's webhook"

// tellable gives the GitRepository a webhook, and an interval that no test waits for.
func (w *world) tellable() {
	w.t.Helper()
	secret := filepath.Join(w.dir, "secrets", team, "hook")
	w.must(os.MkdirAll(secret, 0o700))
	w.must(os.WriteFile(filepath.Join(secret, "token"), []byte(hookToken), 0o600))
	body := []byte(`{"spec":{"interval":"1h","webhook":{"type":"generic","secretRef":{"name":"hook"}}}}`)
	changed, err := w.client.Resource(install.GitRepositories).Namespace(team).Patch(w.deadline(), "apps", types.MergePatchType, body, metav1.PatchOptions{})
	w.must(err)
	// Asked for this generation: what comes next is not that look.
	w.untilObject(install.GitRepositories, team, "apps", func(u *unstructured.Unstructured) (bool, error) {
		seen, _, err := unstructured.NestedInt64(u.Object, "status", "observedGeneration")
		return seen == changed.GetGeneration(), err
	})
}

// tell calls the hub's webhook and gives the code of the answer.
func (w *world) tell(key string) int {
	w.t.Helper()
	const body = `{"ref":"refs/heads/main"}`
	sum := hmac.New(sha256.New, []byte(key))
	sum.Write([]byte(body))
	request, err := http.NewRequestWithContext(w.deadline(), http.MethodPost, "http://"+loopback(w.hooks)+"/v1/hooks/"+team+"/gitrepository/apps", strings.NewReader(body))
	w.must(err)
	request.Header.Set("X-Convoy-Signature", "sha256="+hex.EncodeToString(sum.Sum(nil)))
	client := http.Client{Timeout: 10 * time.Second}
	answer, err := client.Do(request)
	w.must(err)
	w.must(answer.Body.Close())
	return answer.StatusCode
}
