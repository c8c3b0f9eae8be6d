// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"kumodo.io/convoy/pkg/manifest"
)

// To be made anew an object is deleted first, and what the cluster says is its own goes
// with it. So only kinds of which it is known what that is are ever replaced, and none
// with which data would go.

// replacements are these kinds, and what becomes of their dependents: of most there are
// none by nature, so those that somebody gave them are let go. What workloads and
// Services made goes with them, since its new one makes its own.
var replacements = map[groupKind]metav1.DeletionPropagation{
	{"", "ConfigMap"}:                                    metav1.DeletePropagationOrphan,
	{"", "Secret"}:                                       metav1.DeletePropagationOrphan,
	{"", "ServiceAccount"}:                               metav1.DeletePropagationOrphan,
	{"", "Endpoints"}:                                    metav1.DeletePropagationOrphan,
	{"", "LimitRange"}:                                   metav1.DeletePropagationOrphan,
	{"", "ResourceQuota"}:                                metav1.DeletePropagationOrphan,
	{"", "PodTemplate"}:                                  metav1.DeletePropagationOrphan,
	{groupRBAC, "Role"}:                                  metav1.DeletePropagationOrphan,
	{groupRBAC, "RoleBinding"}:                           metav1.DeletePropagationOrphan,
	{groupRBAC, "ClusterRole"}:                           metav1.DeletePropagationOrphan,
	{groupRBAC, "ClusterRoleBinding"}:                    metav1.DeletePropagationOrphan,
	{groupNetwork, "Ingress"}:                            metav1.DeletePropagationOrphan,
	{groupNetwork, "IngressClass"}:                       metav1.DeletePropagationOrphan,
	{groupNetwork, "NetworkPolicy"}:                      metav1.DeletePropagationOrphan,
	{"policy", "PodDisruptionBudget"}:                    metav1.DeletePropagationOrphan,
	{"autoscaling", "HorizontalPodAutoscaler"}:           metav1.DeletePropagationOrphan,
	{"storage.k8s.io", "StorageClass"}:                   metav1.DeletePropagationOrphan,
	{"storage.k8s.io", "CSIDriver"}:                      metav1.DeletePropagationOrphan,
	{"scheduling.k8s.io", "PriorityClass"}:               metav1.DeletePropagationOrphan,
	{"node.k8s.io", "RuntimeClass"}:                      metav1.DeletePropagationOrphan,
	{"discovery.k8s.io", "EndpointSlice"}:                metav1.DeletePropagationOrphan,
	{"coordination.k8s.io", "Lease"}:                     metav1.DeletePropagationOrphan,
	{groupFlow, "FlowSchema"}:                            metav1.DeletePropagationOrphan,
	{groupFlow, "PriorityLevelConfiguration"}:            metav1.DeletePropagationOrphan,
	{groupAdmission, "ValidatingAdmissionPolicyBinding"}: metav1.DeletePropagationOrphan,
	{groupAdmission, "MutatingAdmissionPolicyBinding"}:   metav1.DeletePropagationOrphan,
	{"", "Service"}:                                      metav1.DeletePropagationBackground,
	{"", "Pod"}:                                          metav1.DeletePropagationBackground,
	{"", "ReplicationController"}:                        metav1.DeletePropagationBackground,
	{"apps", "Deployment"}:                               metav1.DeletePropagationBackground,
	{"apps", "DaemonSet"}:                                metav1.DeletePropagationBackground,
	{"apps", "ReplicaSet"}:                               metav1.DeletePropagationBackground,
	{"apps", "StatefulSet"}:                              metav1.DeletePropagationBackground,
	{"batch", "Job"}:                                     metav1.DeletePropagationBackground,
	{"batch", "CronJob"}:                                 metav1.DeletePropagationBackground,
}

const (
	groupRBAC      = "rbac.authorization.k8s.io"
	groupNetwork   = "networking.k8s.io"
	groupFlow      = "flowcontrol.apiserver.k8s.io"
	groupAdmission = "admissionregistration.k8s.io"
)

// maxOwners is how far owner references are followed.
const maxOwners = 16

// holders are the kinds that hold data, of which any may be a dependent.
var holders = []groupKind{{"", kindClaim}, {groupSnapshot, "VolumeSnapshot"}}

// staysInPlace says why an object is not deleted to be made anew, whatever the policy
// says. It is asked when the object is tried, and again before it is deleted, which only
// the state may be that it holds for.
func (r *release) staysInPlace(ctx context.Context, it *item, content map[string]any) (*keptError, error) {
	how, known := replacements[groupKind{it.id.Group, it.id.Kind}]
	if !known {
		return &keptError{}, nil
	}
	why, err := r.annotatedToStay(ctx, it, content)
	if err == nil && why == "" {
		why, err = r.givesRights(ctx, it)
	}
	if err == nil && why == "" && how != metav1.DeletePropagationOrphan {
		why, err = r.takesData(ctx, it.id, *it.res)
	}
	switch {
	case apierrors.IsForbidden(err):
		return &keptError{why: "that it cannot be told whether claims would go with it, " + explain(err, false) + ","}, nil
	case err != nil:
		return nil, err
	case why != "":
		return &keptError{why: why}, nil
	}
	return nil, nil //nolint:nilnil // nothing keeps it, and no error
}

// takesData says which data would go with an object that is deleted with its
// dependents; empty: none. Claims of ephemeral volumes are part of their Pods.
func (r *release) takesData(ctx context.Context, id manifest.Identity, res resource) (string, error) {
	live, err := r.runner.target.get(ctx, res, id.Namespace, id.Name)
	if apierrors.IsNotFound(err) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	if deletesClaims(id, live) {
		return "that " + claimsGo, nil
	}
	w := &ownerWalk{r: r, root: types.UID(metaText(live, "uid")), namespace: id.Namespace, known: map[types.UID]bool{}}
	ctx = asOurselves(ctx) // what a Release may see does not decide what it may destroy
	for _, gk := range holders {
		name, err := w.first(ctx, gk)
		if err != nil {
			return "", err
		}
		if name != "" {
			return fmt.Sprintf("that %s, and its data, would go with it, as its owner references say,", name), nil
		}
	}
	return "", nil
}

// claimsGo is why a StatefulSet stays that deletesClaims is true of.
const claimsGo = "its claims and their data would go with it (persistentVolumeClaimRetentionPolicy.whenDeleted is Delete; with Retain they stay)"

// deletesClaims says whether a live StatefulSet takes its claims along.
func deletesClaims(id manifest.Identity, live map[string]any) bool {
	if !isStatefulSet(id) {
		return false
	}
	spec, ok := live["spec"].(map[string]any)
	if !ok {
		return false
	}
	policy, ok := spec["persistentVolumeClaimRetentionPolicy"].(map[string]any)
	return ok && text(policy["whenDeleted"]) == "Delete"
}

// ownerWalk finds objects that go with one, the root.
type ownerWalk struct {
	r         *release
	root      types.UID
	namespace string
	known     map[types.UID]bool // whether an owner goes with the root
}

// first names an object of a kind that goes with the root; empty: there is none.
func (w *ownerWalk) first(ctx context.Context, gk groupKind) (string, error) {
	target := w.r.runner.target
	res := resource{version: "v1", plural: "persistentvolumeclaims", kind: gk.kind, namespaced: true}
	if gk.group != "" {
		var err error
		if res, err = w.r.runner.discovery.findAny(ctx, gk.group, gk.kind); err != nil {
			if kindGone(err) {
				return "", nil
			}
			return "", err
		}
	}
	query := url.Values{"limit": {strconv.Itoa(pageSize)}}
	for {
		body, _, err := target.call(ctx, request{
			verb: "list", method: http.MethodGet, path: res.path(w.namespace, ""), query: query, accept: typeMetaList,
		})
		if err != nil {
			return "", err
		}
		var page metav1.PartialObjectMetadataList
		if err := json.Unmarshal(body, &page); err != nil {
			return "", fmt.Errorf("decode list of %s: %w", res.plural, err)
		}
		for i := range page.Items {
			item := &page.Items[i].ObjectMeta
			if slices.ContainsFunc(item.OwnerReferences, ofEphemeral) {
				continue
			}
			goes, err := w.follows(ctx, item.OwnerReferences, 0)
			if err != nil {
				return "", err
			}
			if goes {
				return manifest.Identity{Group: gk.group, Kind: gk.kind, Namespace: item.Namespace, Name: item.Name}.String(), nil
			}
		}
		if page.Continue == "" {
			return "", nil
		}
		query.Set("continue", page.Continue)
	}
}

// ofEphemeral says whether a claim is that of an ephemeral volume of a Pod.
func ofEphemeral(ref metav1.OwnerReference) bool {
	return ref.APIVersion == "v1" && ref.Kind == "Pod" && ref.Controller != nil && *ref.Controller
}

// errOwners: references lead from owner to owner without an end.
var errOwners = errors.New("owner references go on for too long")

// follows says whether one of the owners is the root, or goes with it.
func (w *ownerWalk) follows(ctx context.Context, refs []metav1.OwnerReference, depth int) (bool, error) {
	if depth > maxOwners {
		return false, errOwners
	}
	for _, ref := range refs {
		goes, looked := w.known[ref.UID]
		if !looked && ref.UID != w.root {
			var err error
			if goes, err = w.goes(ctx, ref, depth); err != nil {
				return false, err
			}
			w.known[ref.UID] = goes
		}
		if goes || ref.UID == w.root {
			return true, nil
		}
	}
	return false, nil
}

// goes says whether an owner goes with the root. One that is not there does not.
func (w *ownerWalk) goes(ctx context.Context, ref metav1.OwnerReference, depth int) (bool, error) {
	gv, err := schema.ParseGroupVersion(ref.APIVersion)
	if err != nil {
		return false, nil //nolint:nilerr // it names nothing that could be there
	}
	find := w.r.runner.discovery
	res, err := find.find(ctx, gv.Group, gv.Version, ref.Kind)
	if errors.Is(err, errUnknownKind) {
		res, err = find.findAny(ctx, gv.Group, ref.Kind)
	}
	if err == nil {
		namespace := w.namespace
		if !res.namespaced {
			namespace = ""
		}
		var m meta
		if m, err = w.r.runner.target.look(ctx, res, namespace, ref.Name); err == nil {
			if m.UID != string(ref.UID) {
				return false, nil
			}
			return w.follows(ctx, m.Owners, depth+1)
		}
	}
	if kindGone(err) {
		return false, nil
	}
	return false, fmt.Errorf("read the owner %s %s: %w", ref.Kind, ref.Name, err)
}

// What is told of an object that is not replaced since the server would not have its new
// form. A quota is asked as if the live object stayed, whose deletion may make room.
const (
	notReplaced = "; not replaced, since it could not be made anew: "
	quotaHint   = "; to delete it may make room: raise the quota, or delete the object by hand"
)

// overQuota says whether a quota is in the way of a new object.
func overQuota(err error) bool {
	return apierrors.IsForbidden(err) && strings.Contains(err.Error(), textQuota)
}
