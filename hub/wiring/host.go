// SPDX-License-Identifier: Apache-2.0

package wiring

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"kumodo.io/convoy/hub/controller/release"
	"kumodo.io/convoy/hub/source"
)

const (
	// maxSecretFile is the most that is read of one file that stands in for the key
	// of a Secret, and maxSecretFiles the most keys.
	maxSecretFile  = 1 << 20
	maxSecretFiles = 64

	// serviceBits4 and serviceBits6 are the size of the range around the host's own
	// Service that sources are not fetched from: its Services lie there.
	serviceBits4 = 16
	serviceBits6 = 112
)

// hostSecrets reads Secrets of the host cluster, by name alone.
type hostSecrets struct{ client typedcorev1.SecretsGetter }

func (h hostSecrets) GetSecret(ctx context.Context, namespace, name string) (map[string][]byte, error) {
	secret, err := h.client.Secrets(namespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("%w: %s", source.ErrSecretNotFound, name)
	}
	if err != nil {
		return nil, fmt.Errorf("read Secret %s: %w", name, err)
	}
	return secret.Data, nil
}

// hostTexts reads what Releases refer to, by name alone.
type hostTexts struct {
	configMaps typedcorev1.ConfigMapsGetter // nil: there is no host
	secrets    source.SecretGetter
}

func (h hostTexts) ConfigMap(ctx context.Context, namespace, name string) (map[string]string, error) {
	if h.configMaps == nil {
		return nil, source.ErrNoHostCluster
	}
	found, err := h.configMaps.ConfigMaps(namespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, release.ErrNotThere
	}
	if err != nil {
		return nil, fmt.Errorf("read ConfigMap %s: %w", name, err)
	}
	return found.Data, nil
}

func (h hostTexts) Secret(ctx context.Context, namespace, name string) (map[string]string, error) {
	data, err := h.secrets.GetSecret(ctx, namespace, name)
	if errors.Is(err, source.ErrSecretNotFound) {
		return nil, release.ErrNotThere
	}
	if err != nil {
		return nil, err
	}
	texts := make(map[string]string, len(data))
	for key, value := range data {
		texts[key] = string(value)
	}
	return texts, nil
}

// noSecrets is a hub without a host.
type noSecrets struct{}

func (noSecrets) GetSecret(context.Context, string, string) (map[string][]byte, error) {
	return nil, source.ErrNoHostCluster
}

// fileSecrets stands in for a host in tests: <folder>/<namespace>/<name>/<key>.
type fileSecrets struct{ folder string }

func (f fileSecrets) GetSecret(_ context.Context, namespace, name string) (map[string][]byte, error) {
	if len(validation.IsDNS1123Label(namespace)) > 0 || len(validation.IsDNS1123Subdomain(name)) > 0 {
		return nil, fmt.Errorf("%w: %s", source.ErrSecretNotFound, name)
	}
	root, err := os.OpenRoot(f.folder)
	if err != nil {
		return nil, fmt.Errorf("folder of Secrets: %w", err)
	}
	defer root.Close()
	folder, err := root.Open(filepath.Join(namespace, name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: %s", source.ErrSecretNotFound, name)
	}
	if err != nil {
		return nil, fmt.Errorf("read Secret %s: %w", name, err)
	}
	defer folder.Close()
	entries, err := folder.ReadDir(maxSecretFiles)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("read Secret %s: %w", name, err)
	}
	data := map[string][]byte{}
	for _, entry := range entries {
		if !entry.Type().IsRegular() {
			continue
		}
		value, err := readFile(root, filepath.Join(namespace, name, entry.Name()))
		if err != nil {
			return nil, fmt.Errorf("read Secret %s: %w", name, err)
		}
		data[entry.Name()] = value
	}
	return data, nil
}

func readFile(root *os.Root, name string) ([]byte, error) {
	file, err := root.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return io.ReadAll(io.LimitReader(file, maxSecretFile))
}

// serviceRange is the range of the host's Services as a pod can tell it: around
// the address of the API server's own. Sources in it are denied unless
// --source-allow-cidr opens it.
func serviceRange(address string) []netip.Prefix {
	ip, err := netip.ParseAddr(address)
	if err != nil {
		return nil
	}
	bits := serviceBits4
	if ip.Is6() && !ip.Is4In6() {
		bits = serviceBits6
	}
	return []netip.Prefix{netip.PrefixFrom(ip.Unmap(), bits).Masked()}
}
