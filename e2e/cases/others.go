// SPDX-License-Identifier: Apache-2.0

package cases

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
)

// plain are kinds that every namespace has, or that say nothing about the case.
var plain = []string{"Event", "ServiceAccount/default", "ConfigMap/kube-root-ca.crt"}

// showOthers lists, a line each, what else lies in the case's namespace: children that
// controllers made, what was kept or left behind.
func (p *Player) showOthers(ctx context.Context, q *cube) error {
	client, err := discovery.NewDiscoveryClientForConfig(q.plane.RESTConfig())
	if err != nil {
		return fmt.Errorf("discover: %w", err)
	}
	lists, err := client.ServerPreferredNamespacedResources()
	if err != nil && !discovery.IsGroupDiscoveryFailedError(err) {
		p.say("\n# what else is in the namespace cannot be read: %v\n", err)
		return nil
	}
	var lines []string
	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			return fmt.Errorf("discover: %w", err)
		}
		for _, r := range list.APIResources {
			if !slices.Contains(r.Verbs, "list") || slices.Contains(plain, r.Kind) {
				continue
			}
			found, err := q.dynamic.Resource(gv.WithResource(r.Name)).Namespace(p.c.Namespace()).List(ctx, metav1.ListOptions{})
			if err != nil {
				if apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err) {
					continue
				}
				lines = append(lines, fmt.Sprintf("%s cannot be listed: %v", r.Kind, err))
				continue
			}
			for _, item := range found.Items {
				if p.known(q, gv.Group, r.Kind, item.GetName()) || slices.Contains(plain, r.Kind+"/"+item.GetName()) {
					continue
				}
				lines = append(lines, fmt.Sprintf("%s %s uid %s resourceVersion %s", r.Kind, item.GetName(), item.GetUID(), item.GetResourceVersion()))
			}
		}
	}
	if len(lines) > 0 {
		slices.Sort(lines)
		p.say("\nalso in namespace %s of %s:\n", p.c.Namespace(), q.plane.Name())
		for _, line := range lines {
			p.say("  - %s\n", line)
		}
	}
	return nil
}

func (p *Player) known(q *cube, group, kind, name string) bool {
	return slices.ContainsFunc(p.seen, func(s *seen) bool {
		return s.cube == q && s.gvk.Group == group && s.gvk.Kind == kind && s.namespace == p.c.Namespace() && s.name == name
	})
}
