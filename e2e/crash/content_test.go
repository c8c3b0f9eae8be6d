// SPDX-License-Identifier: Apache-2.0

package crash_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"kumodo.io/convoy/e2e/harness"
)

// contents adds versions v1 and v2 of twelve objects in two waves for one worker, with
// hooks of all phases that leave nothing. From v1 to v2 some change, three leave, one
// comes.
func contents(files map[string]string, worker int) {
	for _, version := range []string{"v1", "v2"} {
		var docs []string
		add := func(text string) { docs = append(docs, strings.ReplaceAll(text, "VALUE", version)) }
		add("apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: app}\n")
		add("apiVersion: v1\nkind: Secret\nmetadata: {name: login}\nstringData: {password: secret-VALUE}\n")
		add("apiVersion: v1\nkind: Service\nmetadata: {name: app}\nspec: {selector: {app: app}, ports: [{port: 80}]}\n")
		add("apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: {name: app}\nrules: [{apiGroups: [\"\"], resources: [pods], verbs: [get]}]\n")
		add("apiVersion: rbac.authorization.k8s.io/v1\nkind: RoleBinding\nmetadata: {name: app}\nroleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: app}\nsubjects: [{kind: ServiceAccount, name: app}]\n")
		add(fmt.Sprintf("apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: %s, labels: {version: VALUE}}\nrules: [{apiGroups: [\"\"], resources: [nodes], verbs: [get]}]\n", namespaceOf(worker)))
		add("apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: app}\nspec:\n  replicas: 0\n  selector: {matchLabels: {app: app}}\n  template:\n    metadata: {labels: {app: app}}\n    spec: {containers: [{name: c, image: \"example/app:VALUE\"}]}\n")
		for _, name := range []string{"stays", "leaves-1", "leaves-2"} {
			if version == "v1" || name == "stays" {
				add("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + ", labels: {version: VALUE}}\ndata: {k: VALUE, only-VALUE: x}\n")
			}
		}
		late := "annotations: {convoy.kumodo.io/sync-wave: \"1\"}"
		add("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: late, " + late + "}\ndata: {k: VALUE}\n")
		if version == "v1" {
			add("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: leaves-late, " + late + "}\ndata: {k: VALUE}\n")
		} else {
			add("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: comes, " + late + "}\ndata: {k: VALUE}\n")
		}
		for _, phase := range []string{"PreSync", "PostSync", "PreDelete", "PostDelete"} {
			add("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: " + strings.ToLower(phase) + "\n  annotations: {convoy.kumodo.io/hook: " + phase +
				", convoy.kumodo.io/hook-delete-policy: \"BeforeHookCreation,HookSucceeded\"}\ndata: {k: VALUE}\n")
		}
		files[fmt.Sprintf("%s/%s/all.yaml", namespaceOf(worker), version)] = strings.Join(docs, "---\n")
	}
}

// kinds that contents has.
var kinds = []schema.GroupVersionResource{
	{Version: "v1", Resource: "configmaps"}, {Version: "v1", Resource: "secrets"}, {Version: "v1", Resource: "services"},
	{Version: "v1", Resource: "serviceaccounts"}, {Group: "apps", Version: "v1", Resource: "deployments"},
	{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "roles"},
	{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "rolebindings"},
	{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterroles"},
}

// state is what an edge has for one Release: each object, without what differs between
// any two runs, and the Secrets that the agent keeps.
type state struct {
	Objects map[string]string
	Secrets []string
	// Hooks are the runs that the hub knows of, oldest first.
	Hooks []string
	// uids by object and the number of chunks of layers: not compared between runs.
	uids   map[string]string
	layers int
}

// look reads the state of one worker's part of the edge. What is named after the worker
// or the Release is named neutrally.
func look(ctx context.Context, plane *harness.Plane, namespace, agent, uid string) (state, error) {
	neutral := strings.NewReplacer(namespace, "NAMESPACE", uid, "UID")
	if uid == "" {
		neutral = strings.NewReplacer(namespace, "NAMESPACE")
	}
	out := state{Objects: map[string]string{}, uids: map[string]string{}}
	for _, gvr := range kinds {
		options := metav1.ListOptions{}
		client := plane.Dynamic().Resource(gvr).Namespace(namespace)
		list := client.List
		if gvr.Resource == "clusterroles" {
			list, options.FieldSelector = plane.Dynamic().Resource(gvr).List, "metadata.name="+namespace
		}
		found, err := list(ctx, options)
		if err != nil {
			return out, err
		}
		for _, item := range found.Items {
			if item.GetName() == "kube-root-ca.crt" || item.GetKind() == "ServiceAccount" && item.GetName() == "default" {
				continue
			}
			key := neutral.Replace(gvr.Resource + " " + item.GetName())
			out.uids[key] = string(item.GetUID())
			for _, path := range [][]string{
				{"metadata", "uid"}, {"metadata", "resourceVersion"}, {"metadata", "creationTimestamp"}, {"metadata", "generation"},
				{"metadata", "managedFields"}, {"status"}, {"spec", "clusterIP"}, {"spec", "clusterIPs"},
			} {
				unstructured.RemoveNestedField(item.Object, path...)
			}
			raw, err := json.Marshal(item.Object)
			if err != nil {
				return out, err
			}
			out.Objects[key] = neutral.Replace(string(raw))
		}
	}
	secrets, err := plane.Client().CoreV1().Secrets(agent).List(ctx, metav1.ListOptions{})
	if err != nil {
		return out, err
	}
	for _, s := range secrets.Items {
		if s.Labels["convoy.kumodo.io/state"] == "render" {
			// Those that nothing refers to go some seconds later; see tidied.
			out.layers++
			continue
		}
		out.Secrets = append(out.Secrets, neutral.Replace(s.Name))
	}
	slices.Sort(out.Secrets)
	return out, nil
}
