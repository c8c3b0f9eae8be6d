// SPDX-License-Identifier: Apache-2.0

package cases

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"

	"kumodo.io/convoy/e2e/harness"
	"kumodo.io/convoy/e2e/install"
)

// target is one Cluster of a case: where it is on the hub, which plane it is and the
// agent there. Each has a namespace of its own on the hub, since a Release, which is
// for one Cluster, has the same name for each.
type target struct {
	// namespace on the hub and name of the Cluster.
	namespace, cluster string
	agent              *install.DirectAgent
	cube               *cube
	link               *link // that the agent dials
	apiStopped         bool
	// former are clusters that this Cluster stood for before.
	former []*cube
}

// cube is a plane with what is needed to read and write any kind.
type cube struct {
	plane   *harness.Plane
	version discovery.ServerVersionInterface
	mapper  *restmapper.DeferredDiscoveryRESTMapper
	dynamic dynamic.Interface
}

func newCube(plane *harness.Plane) (*cube, error) {
	config := plane.RESTConfig()
	config.WarningHandler = rest.NoWarnings{} // all kinds are listed, old ones too
	config.Timeout = listWait
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("client of %s: %w", plane.Name(), err)
	}
	objects, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("client of %s: %w", plane.Name(), err)
	}
	return &cube{
		plane: plane, version: client, mapper: restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(client)), dynamic: objects,
	}, nil
}

// answers says whether the API server can be asked at all. While it is down the rest
// of a cube would take every kind for one that is not served.
func (q *cube) answers() error {
	if _, err := q.version.ServerVersion(); err != nil {
		return fmt.Errorf("%s does not answer: %w", q.plane.Name(), err)
	}
	return nil
}

// as gives a client that calls itself by a field manager's name.
func (q *cube) as(manager string) (dynamic.Interface, error) {
	config := q.plane.RESTConfig()
	config.UserAgent, config.Timeout = manager, listWait
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("client of %s: %w", manager, err)
	}
	return client, nil
}

// resource finds where a kind is served; kinds that came since the last look are found
// too. The version may be empty.
func (q *cube) resource(client dynamic.Interface, gvk schema.GroupVersionKind, namespace string) (dynamic.ResourceInterface, error) {
	find := func() (*meta.RESTMapping, error) {
		if gvk.Version == "" {
			return q.mapper.RESTMapping(gvk.GroupKind())
		}
		return q.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	}
	mapping, err := find()
	if err != nil {
		q.mapper.Reset()
		if mapping, err = find(); err != nil {
			return nil, fmt.Errorf("kind %s: %w", gvk.GroupKind(), err)
		}
	}
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		return client.Resource(mapping.Resource).Namespace(namespace), nil
	}
	return client.Resource(mapping.Resource), nil
}

// get reads an object; nil when there is none, or no such kind.
func (q *cube) get(ctx context.Context, gvk schema.GroupVersionKind, namespace, name string) (*unstructured.Unstructured, error) {
	out, err := q.read(ctx, gvk, namespace, name)
	if noSuchKind(err) || unserved(err) {
		// A version may be served no more, or its definition be new: the object is read at
		// the one that is.
		q.mapper.Reset()
		gvk.Version = ""
		out, err = q.read(ctx, gvk, namespace, name)
	}
	if noSuchKind(err) || apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // that there is none is an answer
	}
	if err != nil {
		return nil, fmt.Errorf("get %s %s/%s: %w", gvk.Kind, namespace, name, err)
	}
	return out, nil
}

func (q *cube) read(ctx context.Context, gvk schema.GroupVersionKind, namespace, name string) (*unstructured.Unstructured, error) {
	resource, err := q.resource(q.dynamic, gvk, namespace)
	if err != nil {
		return nil, err
	}
	return resource.Get(ctx, name, metav1.GetOptions{}) //nolint:wrapcheck // told apart by the caller
}

// unserved says whether there is nothing at a path at all: a server that knows a kind
// names the object that it does not find.
func unserved(err error) bool {
	var status apierrors.APIStatus
	return apierrors.IsNotFound(err) && errors.As(err, &status) && (status.Status().Details == nil || status.Status().Details.Name == "" ||
		apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse))
}

// join makes a Cluster in a namespace of the hub, installs an agent for it on the plane
// and waits until the hub has it.
func (p *Player) join(ctx context.Context, plane *harness.Plane, namespace, cluster string) (*target, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("cluster %s has not joined", cluster))
	defer cancel()
	if err := ensureNamespace(ctx, p.world.Hub.Plane, namespace); err != nil {
		return nil, err
	}
	q, err := newCube(plane)
	if err != nil {
		return nil, err
	}
	agent, err := p.world.Hub.JoinDirect(ctx, plane, namespace, cluster, "agent-"+namespace)
	if err != nil {
		return nil, err
	}
	over, err := newLink(ctx, net.JoinHostPort("127.0.0.1", strconv.Itoa(p.world.Hub.GatewayPort)))
	if err != nil {
		return nil, err
	}
	agent.Args = append(agent.Args, "--gateway-url="+over.url())
	t := &target{namespace: namespace, cluster: cluster, agent: agent, cube: q, link: over}
	if err := agent.Start(ctx); err != nil {
		return nil, errors.Join(err, over.close())
	}
	if err := p.world.Hub.WaitCluster(ctx, namespace, cluster); err != nil {
		return t, fmt.Errorf("%w: %s", err, install.Tail(agent.Log()))
	}
	return t, nil
}

func ensureNamespace(ctx context.Context, plane *harness.Plane, name string) error {
	object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": name}}}
	namespaces := plane.Dynamic().Resource(namespaceResource)
	_, err := namespaces.Create(ctx, object, metav1.CreateOptions{})
	if !apierrors.IsAlreadyExists(err) {
		if err != nil {
			return fmt.Errorf("namespace %s on %s: %w", name, plane.Name(), err)
		}
		return nil
	}
	// One of an earlier case may be on its way out, and takes nothing any more.
	there, err := namespaces.Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) || err == nil && there.GetDeletionTimestamp() != nil {
		wait, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("namespace %s on %s is being deleted, and does not go", name, plane.Name()))
		defer cancel()
		if err := harness.WaitGone(wait, plane.Dynamic(), namespaceResource, "", name); err != nil {
			return fmt.Errorf("namespace %s on %s is being deleted: %w", name, plane.Name(), err)
		}
		_, err = namespaces.Create(ctx, object, metav1.CreateOptions{})
	}
	if err != nil {
		return fmt.Errorf("namespace %s on %s: %w", name, plane.Name(), err)
	}
	return nil
}

var namespaceResource = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}

// renders says whether the case makes its namespace by itself.
func (c *Case) renders(namespace string) bool {
	for _, s := range c.Steps {
		if s.Do != doRender && s.Do != doFiles {
			continue
		}
		for _, doc := range s.Docs {
			if doc.Kind() == "Namespace" && doc.Name() == namespace {
				return true
			}
		}
		for _, text := range s.Tree {
			if strings.Contains(text, "kind: Namespace") && strings.Contains(text, namespace) {
				return true
			}
		}
	}
	return false
}

// noSuchKind says whether the API server does not serve a kind.
func noSuchKind(err error) bool {
	var kind *meta.NoKindMatchError
	var resource *meta.NoResourceMatchError
	return errors.As(err, &kind) || errors.As(err, &resource)
}

// namespaced says whether objects of a kind are in namespaces; of a kind that is not
// served, not.
func (q *cube) namespaced(gvk schema.GroupVersionKind) bool {
	mapping, err := q.mapper.RESTMapping(gvk.GroupKind())
	return err == nil && mapping.Scope.Name() == meta.RESTScopeNameNamespace
}

// guess finds the kind that a person means by a word such as Deployment or service.
func (q *cube) guess(word string) (schema.GroupVersionKind, error) {
	resource, err := q.mapper.ResourceFor(schema.GroupVersionResource{Resource: strings.ToLower(word)})
	if err != nil {
		q.mapper.Reset()
		if resource, err = q.mapper.ResourceFor(schema.GroupVersionResource{Resource: strings.ToLower(word)}); err != nil {
			return schema.GroupVersionKind{}, fmt.Errorf("kind %s: %w", word, err)
		}
	}
	kind, err := q.mapper.KindFor(resource)
	if err != nil {
		return schema.GroupVersionKind{}, fmt.Errorf("kind %s: %w", word, err)
	}
	return kind, nil
}
