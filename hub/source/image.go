// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"fmt"

	"kumodo.io/convoy/api/source/v1alpha1"
	"kumodo.io/convoy/hub/source/endpoint"
	"kumodo.io/convoy/hub/source/image"
)

// ImageWant asks for the digest of an image.
type ImageWant struct {
	// Namespace of the Release.
	Namespace string
	// Reference of the image, as in registry.example/app:1.0.
	Reference string
	// Revision of the source that is rendered: for one of them the answer stays.
	Revision string
	// Secrets with docker configurations, in order, and those whose use was checked.
	Secrets, Checked []string
}

// Image gives the digest, sha256:<hex>, that an image's tag led to when it was first
// asked for at that revision of a source. The answer is kept on disk, so that clusters
// that come later get the image that the others have.
func (c *Coordinator) Image(ctx context.Context, w ImageWant) (string, error) {
	parsed, err := image.Parse(w.Reference)
	if err != nil {
		return "", explain(err)
	}
	if parsed.Digest != "" {
		return parsed.Digest, nil
	}
	// Of the namespace too: whether a registry shows an image hangs on credentials.
	key := longKey(w.Namespace, w.Reference, w.Revision)
	if digest, ok := c.images.get(key); ok {
		return digest, nil
	}
	return c.digests.start(c, key, func(ctx context.Context) (string, error) {
		digest, err := c.lookUpImage(ctx, w, endpoint.SchemeHTTPS+"://"+parsed.Registry)
		if err == nil {
			err = c.images.put(key, digest)
		}
		if c.ctx.Err() != nil {
			return "", ErrStopped
		}
		return digest, explain(err)
	}).wait(ctx)
}

func (c *Coordinator) lookUpImage(ctx context.Context, w ImageWant, registry string) (digest string, err error) {
	ctx, cancel := context.WithTimeout(ctx, resolveTimeout)
	defer cancel()
	disembark, err := c.tenants.enter(ctx, w.Namespace, visitLook)
	if err != nil {
		return "", err
	}
	defer disembark()
	leave, err := c.hosts.enter(ctx, origin(registry), sourceKey("image", w.Namespace, w.Reference), visitLook)
	if err != nil {
		return "", err
	}
	defer func() { leave(err) }()
	if err := c.resolving.Acquire(ctx, 1); err != nil {
		return "", err
	}
	defer c.resolving.Release(1)
	var remotes []endpoint.Remote
	for _, name := range w.Secrets {
		data, err := c.checkedSecret(ctx, w.Namespace, name, w.Checked)
		if err != nil {
			return "", err
		}
		if len(data[keyDocker]) == 0 {
			return "", failure(v1alpha1.ReasonSecretMissing, "Secret %s has no key %s", name, keyDocker)
		}
		remotes = append(remotes, endpoint.Remote{Policy: c.policy, Auth: endpoint.Auth{Docker: data[keyDocker]}})
	}
	digest, err = image.Resolve(ctx, c.policy, remotes, w.Reference)
	if err != nil {
		return "", fmt.Errorf("image %s: %w", w.Reference, err)
	}
	return digest, nil
}
