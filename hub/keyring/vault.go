// SPDX-License-Identifier: Apache-2.0

package keyring

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
)

// NewSecretVault keeps keys in Secrets of one namespace of the host cluster. They
// must exist: RBAC cannot restrict who creates what by name, so the manifests
// ship them empty and the hub may only get and update them.
func NewSecretVault(client typedcorev1.SecretInterface) Vault {
	return secretVault{client}
}

type secretVault struct {
	client typedcorev1.SecretInterface
}

func (v secretVault) Get(ctx context.Context, name string) (map[string][]byte, string, error) {
	s, err := v.client.Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, "", fmt.Errorf("%w: %w", ErrNotFound, err)
	}
	if err != nil {
		return nil, "", fmt.Errorf("get Secret: %w", err)
	}
	encoded, err := json.Marshal(s.ObjectMeta)
	if err != nil {
		return nil, "", fmt.Errorf("encode metadata: %w", err)
	}
	return s.Data, string(encoded), nil
}

// Update writes under the metadata that Get saw, resourceVersion included, so
// that labels and annotations of the manifests stay.
func (v secretVault) Update(ctx context.Context, name string, data map[string][]byte, version string) error {
	s := &corev1.Secret{Data: data}
	if err := json.Unmarshal([]byte(version), &s.ObjectMeta); err != nil {
		return fmt.Errorf("decode metadata: %w", err)
	}
	s.Name = name
	_, err := v.client.Update(ctx, s, metav1.UpdateOptions{})
	if apierrors.IsConflict(err) {
		return fmt.Errorf("%w: %w", ErrConflict, err)
	}
	if err != nil {
		return fmt.Errorf("update Secret: %w", err)
	}
	return nil
}

// NewFileVault keeps keys in files of mode 0600 in the given directory, which is
// made, closed to others, at the first write.
func NewFileVault(dir string) Vault {
	return fileVault{dir}
}

type fileVault struct {
	dir string
}

// maxKeyFile bounds what is read of one file.
const maxKeyFile = 64 << 10

func (v fileVault) path(name string) string { return filepath.Join(v.dir, name+".json") }

func (v fileVault) Get(_ context.Context, name string) (map[string][]byte, string, error) {
	info, err := os.Stat(v.path(name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, "", nil
	}
	if err != nil {
		return nil, "", fmt.Errorf("find key file: %w", err)
	}
	if info.Size() > maxKeyFile {
		return nil, "", fmt.Errorf("%w: %d bytes", ErrBroken, info.Size())
	}
	raw, err := os.ReadFile(v.path(name))
	if err != nil {
		return nil, "", fmt.Errorf("read key file: %w", err)
	}
	data := map[string][]byte{}
	if err := json.Unmarshal(raw, &data); err != nil {
		return nil, "", fmt.Errorf("%w: %w", ErrBroken, err)
	}
	return data, "", nil
}

// Update writes a file that is not there. Of two writers one wins: the whole file
// appears under its name at once, and only if the name is free.
func (v fileVault) Update(_ context.Context, name string, data map[string][]byte, _ string) (err error) {
	if err := os.MkdirAll(v.dir, 0o700); err != nil {
		return fmt.Errorf("make key directory: %w", err)
	}
	raw, err := json.Marshal(data)
	if err != nil {
		return fmt.Errorf("encode key: %w", err)
	}
	// CreateTemp opens with mode 0600.
	f, err := os.CreateTemp(v.dir, ".new-*")
	if err != nil {
		return fmt.Errorf("make key file: %w", err)
	}
	defer func() { err = errors.Join(err, os.Remove(f.Name())) }()
	_, werr := f.Write(raw)
	if err := errors.Join(werr, f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("write key file: %w", err)
	}
	err = os.Link(f.Name(), v.path(name))
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%w: %w", ErrConflict, err)
	}
	if err != nil {
		return fmt.Errorf("name key file: %w", err)
	}
	return nil
}
