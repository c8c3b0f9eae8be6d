// SPDX-License-Identifier: Apache-2.0

package options

import (
	"fmt"
	"io"
	"time"

	"github.com/spf13/pflag"
	cliflag "k8s.io/component-base/cli/flag"

	"kumodo.io/convoy/hub/apiserver"
)

// Defaults.
const (
	DefaultGatewayAddr = ":8443"
	DefaultMetricsAddr = ":8081"
	DefaultServeAddr   = ":8080"
	DefaultResync      = 2 * time.Minute
	// DefaultStoreSweep is how often unused renders are looked for.
	DefaultStoreSweep = time.Hour
	// DefaultGatewayDrain leaves time for the rest of an ordered end within the
	// manifest's terminationGracePeriodSeconds.
	DefaultGatewayDrain = 25 * time.Second
	// DefaultGatewayURL is the gateway's Service in the host cluster. Agents
	// elsewhere need an address that they can reach.
	DefaultGatewayURL = "wss://convoy-gateway.convoy-system.svc:443"
	// DefaultObserverURL is the observer's Service in the host cluster.
	DefaultObserverURL = "http://convoy-observer.convoy-system.svc:8080"
	// RolesAll is the only value of --roles so far.
	RolesAll = "all"

	// LogText and LogJSON are the values of --log-format.
	LogText = "text"
	LogJSON = "json"

	minResync     = 10 * time.Second
	minStoreSweep = time.Minute
	helpWidth     = 100
)

// Options are the flags of the hub as given.
type Options struct {
	API *apiserver.Options

	EmbeddedEtcd         bool
	DataDir              string
	Kubeconfig           string
	StandaloneSecretsDir string

	GatewayAddr  string
	GatewayPlain bool
	GatewayURL   string
	GatewayDrain time.Duration
	AgentImage   string

	ServeAddr   string
	ObserverURL string

	MetricsAddr string
	WebhookAddr string
	LogFormat   string
	Verbosity   int

	SourceAllowCIDR  []string
	ClusterAllowCIDR []string
	Roles            string
	Resync           time.Duration
	StoreSweep       time.Duration

	RenderStore RenderStore
}

// New gives the defaults.
func New() *Options {
	o := &Options{
		API:          apiserver.NewOptions(),
		GatewayAddr:  DefaultGatewayAddr,
		GatewayDrain: DefaultGatewayDrain,
		ServeAddr:    DefaultServeAddr,
		ObserverURL:  DefaultObserverURL,
		MetricsAddr:  DefaultMetricsAddr,
		LogFormat:    LogJSON,
		Roles:        RolesAll,
		Resync:       DefaultResync,
		StoreSweep:   DefaultStoreSweep,
	}
	// Decided by Complete: loopback without a host cluster, all addresses with one.
	o.API.SecureServing.BindAddress = nil
	return o
}

// Flags gives all flags, in the sections that help shows.
func (o *Options) Flags() *cliflag.NamedFlagSets {
	f := &cliflag.NamedFlagSets{}

	hub := f.FlagSet("hub")
	hub.StringVar(&o.Kubeconfig, "kubeconfig", o.Kubeconfig, "Kubeconfig of the host cluster. Empty: the in-cluster configuration.")
	hub.StringVar(&o.DataDir, "data-dir", o.DataDir, "Directory for renders, for the embedded etcd, and for the keys of a standalone hub.")
	hub.StringVar(&o.Roles, "roles", o.Roles, `Roles that run in this process. Only "all" so far.`)
	hub.DurationVar(&o.Resync, "resync", o.Resync, "How often all objects are looked at again without an event.")
	hub.DurationVar(&o.StoreSweep, "store-gc-interval", o.StoreSweep, "How often renders are looked for that nothing refers to any more and that are older than a day, to delete them. The first time is half an hour after the start, or later. 0: never.")
	hub.StringVar(&o.MetricsAddr, "metrics-addr", o.MetricsAddr, "Address for /metrics, /healthz, /livez and /readyz, plain HTTP. Empty: none.")
	hub.StringVar(&o.WebhookAddr, "webhook-addr", o.WebhookAddr, "Address for POST /v1/hooks/NAMESPACE/KIND/NAME, where sources tell of changes, plain HTTP: what ends TLS stands before it. Empty: none.")
	hub.StringVar(&o.LogFormat, "log-format", o.LogFormat, "Format of the log: text or json.")
	hub.IntVarP(&o.Verbosity, "v", "v", o.Verbosity, "Verbosity of the log: 0 for operators, 1 and more for developers.")

	alone := f.FlagSet("standalone")
	alone.BoolVar(&o.API.Standalone, "standalone", o.API.Standalone, "Run without a host cluster, for evaluation: client certificates of the hub's CA, embedded etcd, listening on loopback. Writes admin.kubeconfig into --data-dir.")
	alone.StringVar(&o.StandaloneSecretsDir, "standalone-secrets-dir", o.StandaloneSecretsDir, "With --standalone: directory with <namespace>/<secret>/<key> files that stand in for Secrets, for tests.")

	storage := f.FlagSet("embedded etcd")
	storage.BoolVar(&o.EmbeddedEtcd, "embedded-etcd", o.EmbeddedEtcd, "Store in an etcd inside this process, under --data-dir. For one replica only.")

	gateway := f.FlagSet("gateway")
	gateway.StringVar(&o.GatewayAddr, "gateway-addr", o.GatewayAddr, "Address where agents dial in.")
	gateway.BoolVar(&o.GatewayPlain, "gateway-plain", o.GatewayPlain, "Serve the gateway without outer TLS, behind something that terminates it. The inner TLS stays.")
	gateway.DurationVar(&o.GatewayDrain, "gateway-drain-timeout", o.GatewayDrain, "How long an ordered end waits for agents that were asked to go; 0: they are cut off at once, and come back as after a crash.")
	gateway.StringVar(&o.GatewayURL, "gateway-url", o.GatewayURL, "Where agents reach the gateway, told to them when they join, as in wss://convoy.example:443. Empty: the gateway's Service, or the loopback address with --standalone.")
	gateway.StringVar(&o.AgentImage, "agent-image", o.AgentImage, "Image of the agent, told to installers.")

	observer := f.FlagSet("observer")
	observer.StringVar(&o.ServeAddr, "serve-addr", o.ServeAddr, "Address where the observer answers the API server, plain HTTP; every request is signed with the hub's keys. Empty: no observer. With --standalone a free port on loopback.")
	observer.StringVar(&o.ObserverURL, "observer-url", o.ObserverURL, "Where the API server asks the observer for previews. Empty: previews are refused. With --standalone this hub's own observer.")

	source := f.FlagSet("source")
	source.StringSliceVar(&o.SourceAllowCIDR, "source-allow-cidr", o.SourceAllowCIDR, "Address ranges that sources may be fetched from although they are loopback, link-local or the host's, as in 127.0.0.0/8. Opens plain http for them too.")

	o.RenderStore.addFlags(f.FlagSet("render store"))

	cluster := f.FlagSet("cluster")
	cluster.StringSliceVar(&o.ClusterAllowCIDR, "cluster-allow-cidr", o.ClusterAllowCIDR, "Address ranges that the kubeconfigs of agentless Clusters may lead to although they are loopback, link-local or the host's Services.")

	o.API.AddFlags(f)
	return f
}

// Parse reads a command line. It gives pflag.ErrHelp after printing help to out.
func Parse(args []string, out io.Writer) (*Options, error) {
	o := New()
	sections := o.Flags()
	all := pflag.NewFlagSet("convoy-hub", pflag.ContinueOnError)
	all.SetNormalizeFunc(cliflag.WordSepNormalizeFunc)
	all.SetOutput(out)
	for _, name := range sections.Order {
		all.AddFlagSet(sections.FlagSets[name])
	}
	all.Usage = func() {
		fmt.Fprintln(out, "Usage: convoy-hub [flags]")
		cliflag.PrintSections(out, *sections, helpWidth)
	}
	if err := all.Parse(args); err != nil {
		return nil, fmt.Errorf("read flags: %w", err)
	}
	if all.NArg() > 0 {
		return nil, fmt.Errorf("%w: unexpected argument %q", ErrInvalid, all.Arg(0))
	}
	return o, nil
}
