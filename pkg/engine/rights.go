// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// A binding that is deleted to be made anew may be the one by which whoever does it has
// the right to make it. So none is replaced that binds the user of the calls, or a group
// that this one is in; and none if that cannot be told.

// actor is who the server takes the caller for.
type actor struct {
	name   string
	groups []string
}

// whoAmI asks the server.
func (t *target) whoAmI(ctx context.Context) (actor, error) {
	body, _, err := t.call(ctx, request{
		verb: "whoami", method: http.MethodPost, path: "/apis/authentication.k8s.io/v1/selfsubjectreviews", contentType: typeJSON,
		body: []byte(`{"apiVersion":"authentication.k8s.io/v1","kind":"SelfSubjectReview"}`),
	})
	if err != nil {
		return actor{}, fmt.Errorf("ask who we are: %w", err)
	}
	var answer struct {
		Status struct {
			UserInfo struct {
				Username string   `json:"username"`
				Groups   []string `json:"groups"`
			} `json:"userInfo"`
		} `json:"status"`
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		return actor{}, fmt.Errorf("decode who we are: %w", err)
	}
	return actor{name: answer.Status.UserInfo.Username, groups: answer.Status.UserInfo.Groups}, nil
}

// bound says whether a live binding is one of the caller.
func (a actor) bound(live map[string]any) bool {
	subjects, ok := live["subjects"].([]any)
	if !ok {
		return false
	}
	metadata, ok := live["metadata"].(map[string]any)
	if !ok {
		return true // it is no object that could be judged
	}
	for _, entry := range subjects {
		subject, ok := entry.(map[string]any)
		if !ok {
			return true
		}
		name, namespace := text(subject["name"]), text(subject["namespace"])
		switch text(subject["kind"]) {
		case "User":
			if name == a.name {
				return true
			}
		case "Group":
			if slices.Contains(a.groups, name) {
				return true
			}
		case "ServiceAccount":
			if namespace == "" {
				namespace = text(metadata["namespace"])
			}
			if userPrefix+namespace+":"+name == a.name {
				return true
			}
		default:
			return true
		}
	}
	return false
}

// givesRights says why an object is not deleted to be made anew of which the caller may
// have its rights; empty: it has none of it.
func (r *release) givesRights(ctx context.Context, it *item) (string, error) {
	if it.id.Group != groupRBAC {
		return "", nil
	}
	if it.id.Kind == "Role" || it.id.Kind == "ClusterRole" {
		return "that Convoy may have the right to make it by itself", nil
	}
	live, err := r.runner.target.get(ctx, *it.res, it.id.Namespace, it.id.Name)
	if apierrors.IsNotFound(err) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	who, err := r.runner.target.whoAmI(ctx)
	switch {
	case apierrors.IsForbidden(err), apierrors.IsNotFound(err):
		return "that it cannot be told whether it is made by the rights that it gives, " + explain(err, false) + ",", nil
	case err != nil:
		return "", err
	case who.bound(live):
		return fmt.Sprintf("that %q, as whom it would be made, may have the right to by it", clip(who.name, 120)), nil
	}
	return "", nil
}
