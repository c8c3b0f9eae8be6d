// SPDX-License-Identifier: Apache-2.0

package lease

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
)

// name of the Lease.
const name = "convoy-agent"

// client keeps the Lease in the cluster. It reads and writes the fields that it
// knows and leaves all others as they are.
type client struct {
	rest rest.Interface
	path string
}

func newClient(config *rest.Config, namespace string) (*client, error) {
	config = rest.CopyConfig(config)
	config.NegotiatedSerializer = serializer.NewCodecFactory(runtime.NewScheme()).WithoutConversion()
	config.ContentType, config.AcceptContentTypes = runtime.ContentTypeJSON, runtime.ContentTypeJSON
	config.Timeout = callTimeout
	r, err := rest.UnversionedRESTClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("make a client for the Lease: %w", err)
	}
	return &client{rest: r, path: "/apis/coordination.k8s.io/v1/namespaces/" + namespace + "/leases"}, nil
}

// object is the part of a Lease that is read and written here.
type object struct {
	APIVersion string         `json:"apiVersion,omitempty"`
	Kind       string         `json:"kind,omitempty"`
	Metadata   objectMetadata `json:"metadata"`
	Spec       objectSpec     `json:"spec"`
}

type objectMetadata struct {
	Name            string            `json:"name,omitempty"`
	ResourceVersion string            `json:"resourceVersion,omitempty"`
	Labels          map[string]string `json:"labels,omitempty"`
}

type objectSpec struct {
	HolderIdentity       string            `json:"holderIdentity"`
	LeaseDurationSeconds int32             `json:"leaseDurationSeconds"`
	AcquireTime          *metav1.MicroTime `json:"acquireTime,omitempty"`
	RenewTime            *metav1.MicroTime `json:"renewTime,omitempty"`
	LeaseTransitions     int32             `json:"leaseTransitions"`
}

func write(s spec) objectSpec {
	acquired, renewed := metav1.NewMicroTime(s.acquired), metav1.NewMicroTime(s.renewed)
	return objectSpec{
		HolderIdentity: s.holder, LeaseDurationSeconds: int32(s.duration / time.Second),
		AcquireTime: &acquired, RenewTime: &renewed, LeaseTransitions: s.transitions,
	}
}

func read(raw []byte) (record, error) {
	var o object
	if err := json.Unmarshal(raw, &o); err != nil {
		return record{}, fmt.Errorf("decode Lease: %w", err)
	}
	r := record{version: o.Metadata.ResourceVersion, spec: spec{
		holder: o.Spec.HolderIdentity, duration: time.Duration(o.Spec.LeaseDurationSeconds) * time.Second, transitions: o.Spec.LeaseTransitions,
	}}
	if o.Spec.AcquireTime != nil {
		r.spec.acquired = o.Spec.AcquireTime.Time
	}
	if o.Spec.RenewTime != nil {
		r.spec.renewed = o.Spec.RenewTime.Time
	}
	return r, nil
}

func (c *client) get(ctx context.Context) (record, error) {
	raw, err := c.rest.Get().AbsPath(c.path, name).Do(ctx).Raw()
	if err != nil {
		return record{}, fault("read Lease", err)
	}
	return read(raw)
}

func (c *client) create(ctx context.Context, s spec) (record, error) {
	body, err := json.Marshal(object{
		APIVersion: "coordination.k8s.io/v1", Kind: "Lease",
		Metadata: objectMetadata{Name: name, Labels: map[string]string{"app.kubernetes.io/name": name}}, Spec: write(s),
	})
	if err != nil {
		return record{}, fmt.Errorf("encode Lease: %w", err)
	}
	raw, err := c.rest.Post().AbsPath(c.path).SetHeader("Content-Type", runtime.ContentTypeJSON).Body(body).Do(ctx).Raw()
	if err != nil {
		return record{}, fault("make Lease", err)
	}
	return read(raw)
}

func (c *client) update(ctx context.Context, version string, s spec) (record, error) {
	body, err := json.Marshal(object{Metadata: objectMetadata{ResourceVersion: version}, Spec: write(s)})
	if err != nil {
		return record{}, fmt.Errorf("encode Lease: %w", err)
	}
	raw, err := c.rest.Patch(types.MergePatchType).AbsPath(c.path, name).Body(body).Do(ctx).Raw()
	if err != nil {
		return record{}, fault("write Lease", err)
	}
	return read(raw)
}

// fault puts what decides into an error of the API server.
func fault(what string, err error) error {
	switch {
	case apierrors.IsNotFound(err):
		return fmt.Errorf("%s: %w: %w", what, errNotFound, err)
	case apierrors.IsAlreadyExists(err):
		return fmt.Errorf("%s: %w: %w", what, errExists, err)
	case apierrors.IsConflict(err):
		return fmt.Errorf("%s: %w: %w", what, errChanged, err)
	}
	return fmt.Errorf("%s: %w", what, err)
}
