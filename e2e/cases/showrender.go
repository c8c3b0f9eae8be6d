// SPDX-License-Identifier: Apache-2.0

package cases

import (
	"context"
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha1 "kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/e2e/harness"
	"kumodo.io/convoy/e2e/install"
)

// preview gives what a Release renders to, whether the cluster takes it or not.
func (p *Player) preview(ctx context.Context, t *target, r *release) ([]map[string]any, error) {
	u, err := p.world.Hub.Plane.Dynamic().Resource(install.Releases).Namespace(t.namespace).Get(ctx, r.name, metav1.GetOptions{}, "preview")
	if err != nil {
		return nil, err //nolint:wrapcheck // names the Release
	}
	made, err := harness.As[corev1alpha1.Preview](u)
	if err != nil {
		return nil, err
	}
	var objects []map[string]any
	for _, raw := range made.Objects {
		var object map[string]any
		if err := json.Unmarshal(raw.Raw, &object); err != nil {
			return nil, fmt.Errorf("preview of %s: %w", r.name, err)
		}
		objects = append(objects, object)
	}
	return objects, nil
}

// showRender prints a render that is not live, or not all of it.
func (p *Player) showRender(ctx context.Context, t *target, r *release) error {
	objects, err := p.preview(ctx, t, r)
	if refusal, ok := asRefusal(err); ok {
		p.say("  render: cannot be shown: %s\n", refusal)
		return nil
	}
	if err != nil {
		return err
	}
	p.say("  render, %d objects, which is not applied as a whole:\n", len(objects))
	for _, object := range objects {
		if !p.opts.Full {
			object, _ = shorten(object).(map[string]any)
		}
		if err := p.yaml([]any{object}, "  "); err != nil {
			return err
		}
	}
	return nil
}
