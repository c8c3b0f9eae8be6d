// SPDX-License-Identifier: Apache-2.0

// Package options turns the agent's flags into what its parts are made from. It
// stands at the start of the agent, before the steps deliver, apply, observe and
// report of the flow source -> render -> store -> deliver -> apply -> observe ->
// report.
package options

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"kumodo.io/convoy/agent/link"
	"kumodo.io/convoy/pkg/version"
)

// Options are the agent's flags as given.
type Options struct {
	Namespace string
	// TargetNamespaces are the only ones that the agent applies to; none: all.
	TargetNamespaces []string
	GatewayURL       string
	OuterCAFile      string
	MetricsAddr      string
	Kubeconfig       string
	RestartAfter     time.Duration
	RedialWithin     time.Duration
	Verbosity        int
	Version          bool
}

// New gives the defaults.
func New() *Options {
	return &Options{MetricsAddr: ":8081", RestartAfter: link.RestartAfter, RedialWithin: link.RedialWithin}
}

// AddFlags adds the flags to a set.
func (o *Options) AddFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.Namespace, "namespace", o.Namespace, "Namespace of the agent, which keeps its Secrets. Required.")
	flags.StringSliceVar(&o.TargetNamespaces, "target-namespaces", o.TargetNamespaces, "The only namespaces that the agent applies to, where its account has rights in those alone (profile shared). Default: the whole cluster.")
	flags.StringVar(&o.GatewayURL, "gateway-url", o.GatewayURL, "Gateway to dial, in place of the one that the join token names.")
	flags.StringVar(&o.OuterCAFile, "outer-ca-file", o.OuterCAFile, "File with CA certificates (PEM) that are trusted, beside the system's and the hub's, for the outer connection: of a proxy or of what ends TLS before the gateway.")
	flags.StringVar(&o.MetricsAddr, "metrics-addr", o.MetricsAddr, "Address of /metrics, /healthz, /readyz and /livez.")
	flags.StringVar(&o.Kubeconfig, "kubeconfig", o.Kubeconfig, "Kubeconfig of the cluster, for use outside of it. Default: the pod's ServiceAccount.")
	flags.DurationVar(&o.RestartAfter, "restart-after", o.RestartAfter, "End after about so long without so much as a connection to anything, so that the kubelet starts the agent anew. 0: never.")
	flags.DurationVar(&o.RedialWithin, "redial-within", o.RedialWithin, "Longest pause before the agent dials again after it has lost a session, and twice the one after its start; dials that fail wait for up to four times as long. The larger a fleet, the longer it should be.")
	flags.IntVarP(&o.Verbosity, "verbosity", "v", o.Verbosity, "Detail of the log: 0 for operators, 1 for developers.")
	flags.BoolVar(&o.Version, "version", o.Version, "Print the version and exit.")
}

// Config is what the agent's parts are made from.
type Config struct {
	// Cluster reaches the API server of the managed cluster.
	Cluster   *rest.Config
	Namespace string
	// TargetNamespaces are the only ones that the agent applies to; none: all.
	TargetNamespaces []string
	GatewayURL       string
	OuterCAFile      string
	MetricsAddr      string
	RestartAfter     time.Duration
	RedialWithin     time.Duration
	Verbosity        int
	// Pod is the name of the pod that this is; "" outside of one.
	Pod string
}

// Validate names all faults at once.
func (o *Options) Validate() error {
	var faults []error
	if o.Namespace == "" {
		faults = append(faults, errors.New("--namespace is required"))
	}
	for _, namespace := range o.TargetNamespaces {
		if len(validation.IsDNS1123Label(namespace)) > 0 {
			faults = append(faults, fmt.Errorf("--target-namespaces: %q is no name of a namespace", namespace))
		}
	}
	if _, _, err := net.SplitHostPort(o.MetricsAddr); err != nil {
		faults = append(faults, fmt.Errorf("--metrics-addr: %w", err))
	}
	if o.RestartAfter < 0 {
		faults = append(faults, errors.New("--restart-after is negative"))
	}
	if o.RedialWithin < link.MinRedialWithin || o.RedialWithin > link.MaxRedialWithin {
		faults = append(faults, fmt.Errorf("--redial-within is not between %s and %s", link.MinRedialWithin, link.MaxRedialWithin))
	}
	if o.GatewayURL != "" {
		if u, err := url.Parse(o.GatewayURL); err != nil || u.Host == "" {
			faults = append(faults, errors.New("--gateway-url is not a URL with a host"))
		}
	}
	return errors.Join(faults...)
}

// Config completes the options.
func (o *Options) Config() (*Config, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	var cluster *rest.Config
	var err error
	if o.Kubeconfig == "" {
		cluster, err = rest.InClusterConfig()
	} else {
		cluster, err = clientcmd.BuildConfigFromFlags("", o.Kubeconfig)
	}
	if err != nil {
		return nil, fmt.Errorf("how to reach the cluster: %w", err)
	}
	// No rate limit here: the server's priority and fairness govern.
	cluster.QPS, cluster.Burst = -1, -1
	cluster.UserAgent = "convoy-agent/" + version.Version
	// A proxy in the environment is for the connection to the hub.
	cluster.Proxy = func(*http.Request) (*url.URL, error) { return nil, nil } //nolint:nilnil // no proxy, no error
	return &Config{
		Cluster: cluster, Namespace: o.Namespace, TargetNamespaces: o.TargetNamespaces, GatewayURL: o.GatewayURL,
		OuterCAFile: o.OuterCAFile, MetricsAddr: o.MetricsAddr, RestartAfter: o.RestartAfter, RedialWithin: o.RedialWithin, Verbosity: o.Verbosity,
		Pod: os.Getenv("POD_NAME"),
	}, nil
}
