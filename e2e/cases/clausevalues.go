// SPDX-License-Identifier: Apache-2.0

package cases

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
)

var jobKind = schema.GroupVersionKind{Group: "batch", Version: "v1", Kind: "Job"}

// finalizerHeld is how long the holder of a finalizer takes where a case says a minute.
const finalizerHeld = time.Minute

// valuesBecome changes a value of a chart, and another to something that it was not, so
// that a Job of the render fails: its pods are not made, and its status says so, since
// the nodes here end every pod well.
func (p *Player) valuesBecome(ctx context.Context, m []string) (string, error) {
	r := p.releases[0]
	values := map[string]any{}
	if r.content.Helm == nil {
		return "", fmt.Errorf("%w: the Release has no chart", ErrCase)
	}
	if r.content.Helm.Values != nil {
		if err := json.Unmarshal(r.content.Helm.Values.Raw, &values); err != nil {
			return "", fmt.Errorf("%w: values: %w", ErrCase, err)
		}
	}
	values[m[1]] = m[2]
	if m[3] != "" {
		values[m[3]] = "false"
	}
	raw, err := json.Marshal(values)
	if err != nil {
		return "", fmt.Errorf("encode values: %w", err)
	}
	content := *r.content.DeepCopy()
	content.Helm.Values = &runtime.RawExtension{Raw: raw}
	if m[3] == "" {
		return p.replaced(ctx, r, r.files, content)
	}
	fctx, enough := context.WithCancel(ctx)
	defer enough()
	group, fctx := errgroup.WithContext(fctx)
	for _, t := range p.targets {
		before, err := t.cube.get(ctx, jobKind, p.c.Namespace(), m[4])
		if err != nil {
			return "", err
		}
		old := types.UID("")
		if before != nil {
			old = before.GetUID()
		}
		if err := denyPods(ctx, t, p.c.Namespace(), m[4]); err != nil {
			return "", err
		}
		group.Go(func() error { return failJob(fctx, t, p.c.Namespace(), m[4], old) })
	}
	did, err := p.replaced(ctx, r, r.files, content)
	if err != nil {
		return "", err
	}
	// Where the old Job is held by a finalizer, the new one is made only after that.
	if _, err := p.letGo(ctx, jobKind, ""); err != nil {
		return "", err
	}
	if err := p.settle(ctx, r); err != nil {
		return "", err
	}
	enough()
	if err := group.Wait(); err != nil && !errors.Is(err, context.Canceled) {
		return "", err
	}
	return did + "; Job " + m[4] + " fails", p.stillAll(ctx)
}

// finalizerHolder lets what is being deleted go, after a while.
func (p *Player) finalizerHolder(ctx context.Context, m []string) (string, error) {
	select {
	case <-ctx.Done():
		return "", context.Cause(ctx)
	case <-time.After(finalizerHeld):
	}
	gvk, err := p.targets[0].cube.guess(m[2])
	if err != nil {
		return "", err
	}
	names, err := p.letGo(ctx, gvk, m[1])
	if err != nil {
		return "", err
	}
	for _, r := range p.releases {
		if err := p.settle(ctx, r); err != nil {
			return "", err
		}
	}
	return fmt.Sprintf("%v let go", names), nil
}

// letGo takes a finalizer, or all of them, off the objects of a kind that are being
// deleted.
func (p *Player) letGo(ctx context.Context, gvk schema.GroupVersionKind, finalizer string) (names []string, err error) {
	for _, t := range p.targets {
		resource, err := t.cube.resource(t.cube.dynamic, gvk, p.c.Namespace())
		if err != nil {
			return nil, err
		}
		list, err := resource.List(ctx, metav1.ListOptions{})
		if err != nil {
			return nil, fmt.Errorf("list %s: %w", gvk.Kind, err)
		}
		for i := range list.Items {
			object := &list.Items[i]
			held := object.GetFinalizers()
			left := slices.DeleteFunc(slices.Clone(held), func(f string) bool { return finalizer == "" || f == finalizer })
			if object.GetDeletionTimestamp() == nil || len(left) == len(held) {
				continue
			}
			body, err := json.Marshal(map[string]any{"metadata": map[string]any{"finalizers": left}})
			if err != nil {
				return nil, fmt.Errorf("encode finalizers: %w", err)
			}
			if _, err := resource.Patch(ctx, object.GetName(), types.MergePatchType, body, metav1.PatchOptions{}); err != nil {
				return nil, fmt.Errorf("let %s %s go: %w", gvk.Kind, object.GetName(), err)
			}
			names = append(names, gvk.Kind+" "+object.GetName())
		}
	}
	return names, nil
}

// denyPods has the cluster refuse the pods of a Job.
func denyPods(ctx context.Context, t *target, namespace, job string) error {
	policy := fmt.Sprintf(`apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: no-pods-%[1]s-%[2]s}
spec:
  matchConstraints:
    resourceRules: [{apiGroups: [""], apiVersions: [v1], resources: [pods], operations: [CREATE]}]
  matchConditions: [{name: here, expression: "object.metadata.namespace == '%[1]s'"}]
  validations: [{expression: "!(has(object.metadata.generateName) && object.metadata.generateName.startsWith('%[2]s-'))", message: "this one fails"}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: no-pods-%[1]s-%[2]s}
spec: {policyName: no-pods-%[1]s-%[2]s, validationActions: [Deny]}
`, namespace, job)
	if _, err := t.cube.plane.KubectlInput(ctx, policy, "apply", "-f", "-"); err != nil {
		return fmt.Errorf("deny pods: %w", err)
	}
	return nil
}

// failJob waits for another Job than that with the UID, and writes that it has failed.
func failJob(ctx context.Context, t *target, namespace, name string, old types.UID) error {
	err := wait.PollUntilContextCancel(ctx, time.Second, true, func(ctx context.Context) (bool, error) {
		job, err := t.cube.get(ctx, jobKind, namespace, name)
		if err != nil || job == nil || job.GetUID() == old {
			return false, err
		}
		resource, err := t.cube.resource(t.cube.dynamic, jobKind, namespace)
		if err != nil {
			return false, err
		}
		now := metav1.Now().UTC().Format(time.RFC3339)
		condition := func(kind string) map[string]any {
			return map[string]any{"type": kind, "status": "True", "reason": "BackoffLimitExceeded", "message": "it was made to fail", "lastTransitionTime": now}
		}
		started, there, err := unstructured.NestedString(job.Object, "status", "startTime")
		if err != nil {
			return false, fmt.Errorf("status of Job %s: %w", name, err)
		}
		if !there {
			started = now
		}
		body, err := json.Marshal(map[string]any{
			"metadata": map[string]any{"resourceVersion": job.GetResourceVersion()},
			"status": map[string]any{
				"startTime": started, "active": 0, "ready": 0, "terminating": 0, "uncountedTerminatedPods": map[string]any{},
				"conditions": []any{condition("FailureTarget"), condition("Failed")},
			},
		})
		if err != nil {
			return false, fmt.Errorf("encode status: %w", err)
		}
		_, err = resource.Patch(ctx, name, types.MergePatchType, body, metav1.PatchOptions{}, "status")
		if apierrors.IsConflict(err) {
			return false, nil // its controller was quicker
		}
		return err == nil, err //nolint:wrapcheck // names the object
	})
	if err != nil {
		return fmt.Errorf("make Job %s fail: %w", name, err)
	}
	return nil
}
