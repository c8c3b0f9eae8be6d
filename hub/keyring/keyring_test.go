// SPDX-License-Identifier: Apache-2.0

package keyring

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/utils/clock"

	"kumodo.io/convoy/pkg/keyset"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m)
}

// memory is a vault with versions, as Secrets have.
type memory struct {
	mu       sync.Mutex
	data     map[string]map[string][]byte
	versions map[string]string
	updates  int
}

func newMemory() *memory {
	m := &memory{data: map[string]map[string][]byte{}, versions: map[string]string{}}
	for _, name := range SecretNames() {
		m.data[name] = nil
	}
	return m
}

func (m *memory) Get(_ context.Context, name string) (map[string][]byte, string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	d, ok := m.data[name]
	if !ok {
		return nil, "", ErrNotFound
	}
	return d, m.versions[name], nil
}

func (m *memory) Update(_ context.Context, name string, data map[string][]byte, version string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.versions[name] != version {
		return ErrConflict
	}
	m.updates++
	m.data[name], m.versions[name] = data, version+"x"
	return nil
}

func TestTheSecondStartHasTheKeysOfTheFirst(t *testing.T) {
	for name, vault := range map[string]Vault{
		"in memory":  newMemory(),
		"in files":   NewFileVault(filepath.Join(t.TempDir(), "keys")),
		"in Secrets": NewSecretVault(fake.NewSimpleClientset(emptySecrets()...).CoreV1().Secrets("convoy-system")),
	} {
		t.Run(name, func(t *testing.T) {
			first, err := Load(t.Context(), vault, clock.RealClock{})
			if err != nil {
				t.Fatal(err)
			}
			second, err := Load(t.Context(), vault, clock.RealClock{})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(summary(first), summary(second)); diff != "" {
				t.Errorf("the keys changed (-first +second):\n%s", diff)
			}
			if len(first.HubID) != 16 || len(first.OrderKey.KeyID) != 16 || first.SealingKey.ID == "" {
				t.Errorf("ids: hub %q, order key %q, sealing key %q", first.HubID, first.OrderKey.KeyID, first.SealingKey.ID)
			}
		})
	}
}

func emptySecrets() []runtime.Object {
	var out []runtime.Object
	for _, name := range SecretNames() {
		out = append(out, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "convoy-system", Name: name, Labels: map[string]string{"keep": "me"}}})
	}
	return out
}

// summary is what must stay the same.
func summary(k *Keyring) map[string]string {
	return map[string]string{
		"hub": k.HubID, "ca": k.HubCA.Pin(), "serving": k.ServingCA.Pin(),
		"order": k.OrderKey.KeyID, "sealing": k.SealingKey.ID + string(k.SealingKey.Key[:]), "mac": string(k.MACKey),
	}
}

func TestTwoHubsThatStartTogetherEndWithTheSameKeys(t *testing.T) {
	for name, vault := range map[string]Vault{"in memory": newMemory(), "in files": NewFileVault(t.TempDir())} {
		t.Run(name, func(t *testing.T) {
			const hubs = 8
			got := make([]map[string]string, hubs)
			errs := make([]error, hubs)
			var wg sync.WaitGroup
			for i := range hubs {
				wg.Go(func() {
					k, err := Load(t.Context(), vault, clock.RealClock{})
					if err != nil {
						errs[i] = err
						return
					}
					got[i] = summary(k)
				})
			}
			wg.Wait()
			for i := range hubs {
				if errs[i] != nil {
					t.Fatalf("hub %d: %v", i, errs[i])
				}
				if diff := cmp.Diff(got[0], got[i]); diff != "" {
					t.Errorf("hub %d has other keys (-first +this):\n%s", i, diff)
				}
			}
		})
	}
}

func TestASecretThatTheManifestsShipIsNamedWhenItIsMissing(t *testing.T) {
	vault := NewSecretVault(fake.NewSimpleClientset().CoreV1().Secrets("convoy-system"))
	if _, err := Load(t.Context(), vault, clock.RealClock{}); !errors.Is(err, ErrMissing) {
		t.Errorf("got %v, want %v", err, ErrMissing)
	}
}

func TestABrokenKeyIsReportedAndNeverReplaced(t *testing.T) {
	for _, name := range SecretNames() {
		t.Run(name, func(t *testing.T) {
			vault := newMemory()
			if _, err := Load(t.Context(), vault, clock.RealClock{}); err != nil {
				t.Fatal(err)
			}
			broken := map[string][]byte{"tls.crt": []byte("no"), "tls.key": []byte("no"), "key": []byte("no")}
			vault.data[name] = broken
			before := vault.updates
			if _, err := Load(t.Context(), vault, clock.RealClock{}); !errors.Is(err, ErrBroken) {
				t.Errorf("got %v, want %v", err, ErrBroken)
			}
			if vault.updates != before {
				t.Error("the broken key was written over")
			}
		})
	}
}

func TestKeyFilesAreForTheirOwnerAlone(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "keys")
	if _, err := Load(t.Context(), NewFileVault(dir), clock.RealClock{}); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) != len(SecretNames()) {
		t.Errorf("%d files, want %d: temporary ones must not stay", len(entries), len(SecretNames()))
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %o, want 0600", e.Name(), info.Mode().Perm())
		}
	}
	info, err := os.Stat(dir)
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != 0o700 {
		t.Errorf("the directory has mode %o, want 0700", info.Mode().Perm())
	}
}

func TestSecretsKeepWhatTheManifestsWroteOnThem(t *testing.T) {
	client := fake.NewSimpleClientset(emptySecrets()...).CoreV1().Secrets("convoy-system")
	if _, err := Load(t.Context(), NewSecretVault(client), clock.RealClock{}); err != nil {
		t.Fatal(err)
	}
	s, err := client.Get(t.Context(), SecretHubCA, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if s.Labels["keep"] != "me" {
		t.Errorf("labels %v, want those of the manifests", s.Labels)
	}
}

func TestAnOldKeyIsAcceptedAndTheHubKeepsItsName(t *testing.T) {
	vault := newMemory()
	before, err := Load(t.Context(), vault, clock.RealClock{})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{SecretHubCA, SecretOrderKey, SecretSealingKey} {
		rotated, _, err := keyset.Rotate(name, vault.data[name], time.Now())
		if err != nil {
			t.Fatal(err)
		}
		vault.data[name] = rotated
	}
	after, err := Load(t.Context(), vault, clock.RealClock{})
	if err != nil {
		t.Fatal(err)
	}
	if after.HubID != before.HubID {
		t.Errorf("the hub is called %s now and was %s", after.HubID, before.HubID)
	}
	if after.HubCA.ID == before.HubCA.ID || after.OrderKey.KeyID == before.OrderKey.KeyID || after.SealingKey.ID == before.SealingKey.ID {
		t.Error("a rotated key is still the current one")
	}
	if len(after.OldHubCAs) != 1 || after.OldHubCAs[0].ID != before.HubCA.ID ||
		len(after.OldOrderKeys) != 1 || after.OldOrderKeys[0].KeyID != before.OrderKey.KeyID ||
		len(after.OldSealingKeys) != 1 || after.OldSealingKeys[0] != before.SealingKey {
		t.Error("an old key is not accepted any more")
	}
	if after.GatewayCA().ID != before.HubCA.ID {
		t.Error("agents that know the first CA alone could not find their hub")
	}
}
