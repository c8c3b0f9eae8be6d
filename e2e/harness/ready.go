// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// until asks probe again and again until it gives no error, the component
// ends, or ctx does. The error of ctx carries the last one of probe.
func (p *Plane) until(ctx context.Context, c Component, probe func(context.Context) error) error {
	proc := p.process(c)
	tick := time.NewTicker(readyPoll)
	defer tick.Stop()
	for {
		err := probe(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-proc.Done():
			return proc.ended()
		case <-ctx.Done():
			return fmt.Errorf("%s: %w", c, errors.Join(context.Cause(ctx), err))
		case <-tick.C:
		}
	}
}

// etcdReady waits until etcd takes connections. It opens its socket only when
// it can serve, and the API server asks more closely itself.
func (p *Plane) etcdReady(ctx context.Context) error {
	return p.until(ctx, Etcd, func(ctx context.Context) error {
		var d net.Dialer
		conn, err := d.DialContext(ctx, "unix", p.etcdSocket())
		if err != nil {
			return fmt.Errorf("connect: %w", err)
		}
		return conn.Close()
	})
}

// apiServerReady waits for /readyz, which anybody may ask.
func (p *Plane) apiServerReady(ctx context.Context) error {
	anonymous := rest.AnonymousClientConfig(p.config)
	transport, err := rest.TransportFor(anonymous)
	if err != nil {
		return fmt.Errorf("make client: %w", err)
	}
	client := &http.Client{Transport: transport, Timeout: 5 * time.Second}
	return p.until(ctx, APIServer, func(ctx context.Context) error {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, p.URL()+"/readyz", nil)
		if err != nil {
			return fmt.Errorf("ask /readyz: %w", err)
		}
		resp, err := client.Do(req)
		if err != nil {
			return fmt.Errorf("ask /readyz: %w", err)
		}
		if err := resp.Body.Close(); err != nil {
			return fmt.Errorf("ask /readyz: %w", err)
		}
		if resp.StatusCode != http.StatusOK {
			return fmt.Errorf("ask /readyz: %s", resp.Status)
		}
		return nil
	})
}

// bootstrap binds the admins' group to cluster-admin. Only system:masters can
// do that in a new cluster; the certificate for it lives in memory and is used
// for this one request.
func (p *Plane) bootstrap(ctx context.Context) error {
	config, err := p.configFor(BootstrapUser, "system:masters")
	if err != nil {
		return err
	}
	config.UserAgent = BootstrapAgent
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("make client: %w", err)
	}
	_, err = client.RbacV1().ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: AdminGroup},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: AdminGroup}},
	}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("bind %s to cluster-admin: %w", AdminGroup, err)
	}
	// Authorization reads bindings from a watch, so it is a moment behind.
	return p.until(ctx, APIServer, func(ctx context.Context) error {
		_, err := p.client.CoreV1().Namespaces().Get(ctx, metav1.NamespaceDefault, metav1.GetOptions{})
		if err != nil && !apierrors.IsForbidden(err) && !apierrors.IsNotFound(err) {
			return fmt.Errorf("act as admin: %w", err)
		}
		return err
	})
}

// settle waits for what the controllers of a plane make by themselves.
func (p *Plane) settle(ctx context.Context) error {
	if p.opts.has(ControllerManager) {
		err := p.exists(ctx, ControllerManager, serviceAccounts, metav1.NamespaceDefault, "default")
		if err != nil {
			return err
		}
	}
	if !p.opts.has(Kwok) {
		return nil
	}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Name: NodeName,
		Labels: map[string]string{
			corev1.LabelHostname: NodeName, corev1.LabelOSStable: "linux", corev1.LabelArchStable: "amd64",
		},
	}}
	// What kwok gives a node by itself has no room for ephemeral storage, and pods that
	// ask for some would wait for ever.
	room := corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("1k"), corev1.ResourceMemory: resource.MustParse("1Ti"),
		corev1.ResourcePods: resource.MustParse("1M"), corev1.ResourceEphemeralStorage: resource.MustParse("1Ti"),
	}
	node.Status.Capacity, node.Status.Allocatable = room, room
	if _, err := p.client.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("make node: %w", err)
	}
	class := &storagev1.StorageClass{
		ObjectMeta: metav1.ObjectMeta{
			Name:        StorageClass,
			Annotations: map[string]string{"storageclass.kubernetes.io/is-default-class": "true"},
		},
		Provisioner: "kwok.x-k8s.io/volume",
	}
	if _, err := p.client.StorageV1().StorageClasses().Create(ctx, class, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("make storage class: %w", err)
	}
	return p.met(ctx, Kwok, nodes, "", NodeName, nodeReady)
}

func (p *Plane) exists(ctx context.Context, c Component, gvr schema.GroupVersionResource, namespace, name string) error {
	return p.met(ctx, c, gvr, namespace, name, func(*unstructured.Unstructured) (bool, error) { return true, nil })
}

// met waits for a condition that component c brings about, and names its log
// when it ends instead.
func (p *Plane) met(ctx context.Context, c Component, gvr schema.GroupVersionResource, namespace, name string, cond Condition) error {
	proc := p.process(c)
	wctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		select {
		case <-proc.Done():
			cancel(proc.ended())
		case <-wctx.Done():
		}
	}()
	_, err := WaitFor(wctx, p.dynamic, gvr, namespace, name, cond)
	return err
}
