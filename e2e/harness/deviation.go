// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

// This file is the whole list of what podrun may do differently from the
// manifests. Every process shares one network and one machine, hence
// addresses and ports; loopback is where the suites serve their sources.

// permittedFlags are the flags whose value may differ, each with its reason.
var permittedFlags = map[string]string{
	"--bind-address":          "listen address: loopback instead of all",
	"--secure-port":           "listen port: several hubs share one network",
	"--gateway-addr":          "listen address of the gateway",
	"--gateway-plain":         "a suite has a load balancer that ends TLS before the gateway",
	"--gateway-url":           "follows the gateway's listen address",
	"--gateway-drain-timeout": "hubs of the suites end at once, and agents come back as after a crash",
	"--metrics-addr":          "listen address of metrics and probes",
	"--serve-addr":            "listen address of the observer",
	"--observer-url":          "follows the observer's listen address: the suites have no names of Services",
	"--redial-within":         "an agent of a suite is alone, and needs not spread its dials as those of a fleet do",
	"--source-allow-cidr":     "the suites serve Git from loopback, which is denied by default",
	"--cluster-allow-cidr":    "the planes of the suites listen on loopback, which is denied by default",
}

// permittedEnv are the variables that name the plane's API server instead of
// a cluster IP.
var permittedEnv = []string{"KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT"}

// permittedService is how a Service reaches the process: the aggregator
// connects to the name that an ExternalName Service gives.
var permittedService = corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "localhost"}

// Deviations are what one process gets that its manifest does not say.
type Deviations struct {
	// Args maps a flag, with its dashes, to the value it gets.
	Args map[string]string
}

// apply changes the arguments of a container. A flag that is not permitted is
// ErrNotPermitted. A flag that the manifest does not have is added.
func (d Deviations) apply(args []string) ([]string, error) {
	out := slices.Clone(args)
	for _, flag := range slices.Sorted(maps.Keys(d.Args)) {
		if _, ok := permittedFlags[flag]; !ok {
			return nil, fmt.Errorf("argument %s: %w", flag, ErrNotPermitted)
		}
		value, found := d.Args[flag], false
		for i := 0; i < len(out); i++ {
			switch {
			case strings.HasPrefix(out[i], flag+"="):
				out[i], found = flag+"="+value, true
			case out[i] == flag && i+1 < len(out):
				out[i+1], found = value, true
				i++
			}
		}
		if !found {
			out = append(out, flag+"="+value)
		}
	}
	return out, nil
}

// env gives the variables that lead to the plane's API server.
func (p *Plane) serviceEnv() map[string]string {
	return map[string]string{permittedEnv[0]: "127.0.0.1", permittedEnv[1]: fmt.Sprint(p.port)}
}

var apiServices = schema.GroupVersionResource{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"}

// RouteService leads a Service of the plane to a port of this machine: the
// Service becomes an ExternalName for localhost, and every APIService that
// names it gets the port.
func (p *Plane) RouteService(ctx context.Context, namespace, name string, port int) error {
	services := p.client.CoreV1().Services(namespace)
	svc, err := services.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("route service: %w", err)
	}
	svc.Spec = permittedService
	svc.Spec.SessionAffinity = corev1.ServiceAffinityNone
	if _, err := services.Update(ctx, svc, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("route service: %w", err)
	}
	list, err := p.dynamic.Resource(apiServices).List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("route service: %w", err)
	}
	patch, err := json.Marshal(map[string]any{"spec": map[string]any{"service": map[string]any{"port": ptr.To(int64(port))}}})
	if err != nil {
		return fmt.Errorf("route service: %w", err)
	}
	for _, item := range list.Items {
		api, err := As[apiService](&item)
		if err != nil {
			return err
		}
		if s := api.Spec.Service; s == nil || s.Namespace != namespace || s.Name != name {
			continue
		}
		_, err = p.dynamic.Resource(apiServices).Patch(ctx, item.GetName(), types.MergePatchType, patch, metav1.PatchOptions{})
		if err != nil {
			return fmt.Errorf("route service: APIService %s: %w", item.GetName(), err)
		}
	}
	return nil
}

// apiService is the part of an APIService that is read here.
type apiService struct {
	Spec struct {
		Service *struct {
			Namespace string `json:"namespace"`
			Name      string `json:"name"`
		} `json:"service"`
	} `json:"spec"`
}
