// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"kumodo.io/convoy/api/core/v1alpha1"
)

// Limits of looking at namespaces.
const (
	// rememberTerminating is how long a namespace is believed to be going: one that
	// is going cannot stop, but one of the same name may be made anew.
	rememberTerminating = 5 * time.Second
	// namespaceTimeout ends one request.
	namespaceTimeout = 10 * time.Second
)

// NamespaceState is what matters of a namespace of the host when something in
// it is deleted.
type NamespaceState struct {
	// Terminating: it is being deleted, or is gone.
	Terminating bool
	// Uninstall: it was annotated, before its deletion began, so that it uninstalls.
	Uninstall bool
}

// Namespaces reads the host's namespaces, without a cache: a namespace that a
// watch has not told of yet may be going already. An answer comes from a request
// that was started after the question, so that it says whether a deletion that
// was seen before came from the namespace's own. All who ask meanwhile share
// the next request.
type Namespaces struct {
	client typedcorev1.NamespacesGetter

	mu sync.Mutex
	// lines by namespace, while somebody asks or the answer is still good.
	lines map[string]*line
}

// line is where those stand who ask about one namespace.
type line struct {
	// users is guarded by the lock of Namespaces.
	users int

	// turn holds one token: who has it may ask, and look at what follows.
	turn    chan struct{}
	started time.Time
	state   NamespaceState
	err     error
}

// NewNamespaces makes a reader of the host's namespaces.
func NewNamespaces(client typedcorev1.NamespacesGetter) *Namespaces {
	return &Namespaces{client: client, lines: map[string]*line{}}
}

// State of a namespace now.
func (n *Namespaces) State(ctx context.Context, name string) (NamespaceState, error) {
	asked := time.Now()
	l := n.enter(name)
	defer n.leave(l)
	select {
	case l.turn <- struct{}{}:
		defer func() { <-l.turn }()
	case <-ctx.Done():
		return NamespaceState{}, fmt.Errorf("read namespace %s of the host: %w", name, ctx.Err())
	}
	going := l.err == nil && l.state.Terminating && asked.Sub(l.started) < rememberTerminating
	if going || l.started.After(asked) {
		return l.state, l.err
	}
	ctx, cancel := context.WithTimeout(ctx, namespaceTimeout)
	defer cancel()
	l.started = time.Now()
	l.state, l.err = n.get(ctx, name)
	return l.state, l.err
}

func (n *Namespaces) get(ctx context.Context, name string) (NamespaceState, error) {
	namespace, err := n.client.Namespaces().Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return NamespaceState{Terminating: true}, nil
	case err != nil:
		return NamespaceState{}, fmt.Errorf("read namespace %s of the host: %w", name, err)
	}
	return NamespaceState{Terminating: namespace.DeletionTimestamp != nil, Uninstall: uninstalls(namespace)}, nil
}

// uninstalls says whether a namespace that is going had the annotation before its
// deletion began. Who may change a namespace may annotate one that is going, but
// may not be who deleted it: what was said then counts. When it was set is known
// by managedFields alone; what they do not tell is not obeyed, and workloads stay.
func uninstalls(namespace *corev1.Namespace) bool {
	deleted := namespace.DeletionTimestamp
	if deleted == nil || namespace.Annotations[v1alpha1.AnnotationUninstallOnDelete] != "true" {
		return false
	}
	// Who changes a value becomes its only owner, at that time. Of several owners
	// all said the same, and the first said it before.
	return slices.ContainsFunc(namespace.ManagedFields, func(entry metav1.ManagedFieldsEntry) bool {
		return entry.Time != nil && !entry.Time.IsZero() && !entry.Time.After(deleted.Time) && entry.Subresource == "" && ownsUninstall(entry)
	})
}

// ownsUninstall says whether an entry of managedFields has the annotation. One that
// cannot be read has nothing.
func ownsUninstall(entry metav1.ManagedFieldsEntry) bool {
	if entry.FieldsV1 == nil {
		return false
	}
	var fields struct {
		Metadata struct {
			Annotations map[string]json.RawMessage `json:"f:annotations"`
		} `json:"f:metadata"`
	}
	if err := json.Unmarshal(entry.FieldsV1.GetRawBytes(), &fields); err != nil {
		return false
	}
	_, ok := fields.Metadata.Annotations["f:"+v1alpha1.AnnotationUninstallOnDelete]
	return ok
}

func (n *Namespaces) enter(name string) *line {
	n.mu.Lock()
	defer n.mu.Unlock()
	l := n.lines[name]
	if l == nil {
		// Lines whose answer is too old to be used go when another is made.
		for other, old := range n.lines {
			// Nobody uses it, so that nobody has its turn.
			if old.users == 0 && time.Since(old.started) > rememberTerminating {
				delete(n.lines, other)
			}
		}
		l = &line{turn: make(chan struct{}, 1)}
		n.lines[name] = l
	}
	l.users++
	return l
}

// leave keeps the line for a while, for the sake of its answer.
func (n *Namespaces) leave(l *line) {
	n.mu.Lock()
	defer n.mu.Unlock()
	l.users--
}
