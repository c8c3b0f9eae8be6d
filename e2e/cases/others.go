// SPDX-License-Identifier: Apache-2.0

package cases

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
)

// plain are kinds that every namespace has, or that say nothing about the case.
var plain = []string{"Event", "ServiceAccount/default", "ConfigMap/kube-root-ca.crt"}

// showOthers lists, a line each, what else lies in the case's namespace: children that
// controllers made, what was kept or left behind. Of a namespace that is being deleted it
// lists all that is still in it.
func (p *Player) showOthers(ctx context.Context, q *cube) error {
	ctx, cancel := context.WithTimeout(ctx, othersWait)
	defer cancel()
	namespaces := []string{p.c.Namespace()}
	for _, s := range p.seen {
		if s.cube == q && s.gvk.Group == "" && s.gvk.Kind == "Namespace" && !slices.Contains(namespaces, s.name) {
			namespaces = append(namespaces, s.name)
		}
	}
	for i, namespace := range namespaces {
		going, err := leaving(ctx, q, namespace)
		if err != nil {
			return err
		}
		if i > 0 && !going {
			continue
		}
		if err := p.showNamespace(ctx, q, namespace, going); err != nil {
			return err
		}
	}
	return nil
}

// leaving says whether a namespace is being deleted.
func leaving(ctx context.Context, q *cube, namespace string) (bool, error) {
	u, err := q.dynamic.Resource(namespaceResource).Get(ctx, namespace, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("namespace %s of %s: %w", namespace, q.plane.Name(), err)
	}
	return u.GetDeletionTimestamp() != nil, nil
}

// showNamespace lists what is in one that the case does not know of, or all of it.
func (p *Player) showNamespace(ctx context.Context, q *cube, namespace string, all bool) error {
	config := q.plane.RESTConfig()
	config.Timeout = listWait
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return fmt.Errorf("discover: %w", err)
	}
	lists, err := client.ServerPreferredNamespacedResources()
	if err != nil && !discovery.IsGroupDiscoveryFailedError(err) {
		p.say("\n# what else is in the namespace cannot be read: %v\n", err)
		return nil
	}
	slow := map[schema.GroupVersion]int{} // lists that never came
	var lines []string
	var away *discovery.ErrGroupDiscoveryFailed
	if all && errors.As(err, &away) {
		for group := range away.Groups {
			lines = append(lines, fmt.Sprintf("API %s does not answer: no namespace goes while it is so", group))
		}
	}
	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			return fmt.Errorf("discover: %w", err)
		}
		for _, r := range list.APIResources {
			if !slices.Contains(r.Verbs, "list") || slices.Contains(plain, r.Kind) {
				continue
			}
			if slow[gv] >= maxSlow || ctx.Err() != nil {
				lines = append(lines, r.Kind+" was not asked for: others of its API did not answer in time")
				continue
			}
			one, cancel := context.WithTimeout(ctx, oneList)
			found, err := q.dynamic.Resource(gv.WithResource(r.Name)).Namespace(namespace).List(one, metav1.ListOptions{})
			if one.Err() != nil {
				slow[gv]++
			}
			cancel()
			if err != nil {
				if apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err) {
					continue
				}
				lines = append(lines, fmt.Sprintf("%s cannot be listed: %v", r.Kind, err))
				continue
			}
			for _, item := range found.Items {
				if !all && (p.known(q, gv.Group, r.Kind, item.GetName()) || slices.Contains(plain, r.Kind+"/"+item.GetName())) {
					continue
				}
				line := fmt.Sprintf("%s %s uid %s resourceVersion %s", r.Kind, item.GetName(), item.GetUID(), item.GetResourceVersion())
				if held := item.GetFinalizers(); all && len(held) > 0 {
					line += ", held by " + strings.Join(held, ", ")
				}
				lines = append(lines, line)
			}
		}
	}
	if all {
		p.say("\nnamespace %s of %s is being deleted; still in it, %d:\n", namespace, q.plane.Name(), len(lines))
	} else if len(lines) > 0 {
		p.say("\nalso in namespace %s of %s:\n", namespace, q.plane.Name())
	}
	if len(lines) > 0 {
		slices.Sort(lines)
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
