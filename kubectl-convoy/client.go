// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/rest"

	corev1alpha1 "kumodo.io/convoy/api/core/v1alpha1"
)

// Errors that a person can do something about; each says what.
var (
	errNotInstalled = errors.New("this API server does not serve core.convoy.kumodo.io: " +
		"is the hub installed there, and is this the right context? (kubectl get apiservices v1alpha1.core.convoy.kumodo.io)")
	errNotAnswering = errors.New("the hub is installed but does not answer " +
		"(kubectl -n convoy-system get pods; kubectl describe apiservice v1alpha1.core.convoy.kumodo.io)")
	errNoCluster = errors.New("no such Cluster")
	errNoRelease = errors.New("no such Release")
	errTooLong   = errors.New("the answer took too long: the hub has 30 s, of a preview for the source and the render; " +
		"kubectl convoy render makes it on your machine")
)

// hub is a client for the kinds of core.convoy.kumodo.io in one namespace.
type hub struct {
	client    rest.Interface
	namespace string
}

// newHub follows the kubeconfig and the flags.
func newHub(flags *genericclioptions.ConfigFlags) (*hub, error) {
	config, err := flags.ToRESTConfig()
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig: %w", err)
	}
	namespace, _, err := flags.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return nil, fmt.Errorf("reading the namespace of the kubeconfig: %w", err)
	}
	scheme := runtime.NewScheme()
	if err := corev1alpha1.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("building the scheme: %w", err)
	}
	config = rest.CopyConfig(config)
	config.GroupVersion = &corev1alpha1.SchemeGroupVersion
	config.APIPath = "/apis"
	config.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	client, err := rest.RESTClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("building the client: %w", err)
	}
	return &hub{client: client, namespace: namespace}, nil
}

// explain turns what the API server says into what to do next. missing is the
// error for an object that is not there.
func explain(err, missing error) error {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return err
	}
	details := status.Status().Details
	switch {
	case apierrors.IsNotFound(err) && apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse):
		// Not a Status of the API but the plain 404 of a path that nobody serves.
		return errNotInstalled
	case apierrors.IsNotFound(err) && details != nil && details.Kind == "namespaces":
		return fmt.Errorf("make it with kubectl create namespace %s, or name another with -n: %w", details.Name, err)
	case apierrors.IsNotFound(err):
		return fmt.Errorf("%w: %w", missing, err)
	case apierrors.IsServiceUnavailable(err), apierrors.IsTimeout(err), apierrors.IsServerTimeout(err):
		return fmt.Errorf("%w: %w", errNotAnswering, err)
	default:
		return err
	}
}
