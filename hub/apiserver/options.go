// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"fmt"

	"github.com/spf13/pflag"
	"k8s.io/apiserver/pkg/admission/plugin/policy/mutating"
	genericoptions "k8s.io/apiserver/pkg/server/options"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	cliflag "k8s.io/component-base/cli/flag"

	"kumodo.io/convoy/hub/apiserver/internal/deletion"
	"kumodo.io/convoy/hub/apiserver/shard"
)

// Options are the library's recommended ones, and ours.
type Options struct {
	Etcd           *genericoptions.EtcdOptions
	SecureServing  *genericoptions.SecureServingOptionsWithLoopback
	Authentication *genericoptions.DelegatingAuthenticationOptions
	Authorization  *genericoptions.DelegatingAuthorizationOptions
	Audit          *genericoptions.AuditOptions
	Features       *genericoptions.FeatureOptions
	Admission      *genericoptions.AdmissionOptions

	// Shards is the number of shards that labels are written for.
	Shards int
	// Standalone runs without a host cluster.
	Standalone bool
	// Budget of deletions that uninstall something.
	Budget Budget
}

// Budget of deletions, for each namespace and for each Cluster.
type Budget = deletion.Budget

// NewOptions gives the defaults.
func NewOptions() *Options {
	serving := genericoptions.NewSecureServingOptions()
	serving.BindPort = DefaultSecurePort
	serving.HTTP2MaxStreamsPerConnection = maxStreams
	serving.ServerCert.CertDirectory = "" // the hub makes its certificate itself

	// The codec is set when the server is made: it belongs to a scheme.
	etcd := genericoptions.NewEtcdOptions(storagebackend.NewDefaultConfig(EtcdPrefix, nil))
	etcd.DeleteCollectionWorkers = deleteCollectionWorkers
	etcd.WatchCacheSizes = []string{"releaseinventories.core.convoy.kumodo.io#0"}

	admission := genericoptions.NewAdmissionOptions()
	// It would have to list policies that hosts before 1.36 do not have, and then
	// refuse every write as "not yet ready".
	admission.DefaultOffPlugins.Insert(mutating.PluginName)

	return &Options{
		Etcd:           etcd,
		SecureServing:  serving.WithLoopback(),
		Authentication: genericoptions.NewDelegatingAuthenticationOptions(),
		Authorization:  genericoptions.NewDelegatingAuthorizationOptions(),
		Audit:          genericoptions.NewAuditOptions(),
		Features:       genericoptions.NewFeatureOptions(),
		Admission:      admission,
		Shards:         1,
		Budget:         Budget{Count: DefaultBudgetCount, Percent: DefaultBudgetPercent, Window: DefaultBudgetWindow},
	}
}

// AddFlags adds them, in named sections.
func (o *Options) AddFlags(f *cliflag.NamedFlagSets) {
	o.Etcd.AddFlags(f.FlagSet("etcd"))
	o.SecureServing.AddFlags(f.FlagSet("api serving"))
	o.Authentication.AddFlags(f.FlagSet("authentication"))
	o.Authorization.AddFlags(f.FlagSet("authorization"))
	o.Audit.AddFlags(f.FlagSet("audit"))
	o.Features.AddFlags(f.FlagSet("features"))
	o.Admission.AddFlags(f.FlagSet("admission"))
	f.FlagSet("api").IntVar(&o.Shards, "shards", o.Shards,
		fmt.Sprintf("Number of shards, 1 to %d, that Clusters, Releases and sources are labelled for. The same on every hub that shares an etcd.", shard.Max))
	o.addBudgetFlags(f.FlagSet("deletion"))
}

// addBudgetFlags adds those of deletions.
func (o *Options) addBudgetFlags(f *pflag.FlagSet) {
	f.IntVar(&o.Budget.Count, "deletion-budget-count", o.Budget.Count,
		"How many deletions of Releases may uninstall something in one window, in each namespace and in each Cluster. More are held until they are confirmed. 0: no budget.")
	f.IntVar(&o.Budget.Percent, "deletion-budget-percent", o.Budget.Percent,
		"The same in percent of the Releases that there are when the window begins. The greater one holds.")
	f.DurationVar(&o.Budget.Window, "deletion-budget-window", o.Budget.Window,
		"How long a window of the deletion budget is. It begins with the first deletion.")
}

// UseKubeconfig makes everything that is asked of the host cluster go through
// one kubeconfig; an empty path means the in-cluster configuration.
func (o *Options) UseKubeconfig(path string) {
	if o.Authentication.RemoteKubeConfigFile == "" {
		o.Authentication.RemoteKubeConfigFile = path
	}
	if o.Authorization.RemoteKubeConfigFile == "" {
		o.Authorization.RemoteKubeConfigFile = path
	}
}

// Validate checks them. Where etcd is, is checked by New, since an embedded one
// says so only when it runs.
func (o *Options) Validate() []error {
	var errs []error
	add := func(more []error) { errs = append(errs, more...) }
	add(o.SecureServing.Validate())
	add(o.Audit.Validate())
	add(o.Features.Validate())
	if o.Standalone {
		errs = append(errs, o.validateStandalone()...)
	} else {
		add(o.Authentication.Validate())
		add(o.Authorization.Validate())
		add(o.Admission.Validate())
	}
	if o.Shards < 1 || o.Shards > shard.Max {
		errs = append(errs, fmt.Errorf("%w: %d, must be 1 to %d", ErrShards, o.Shards, shard.Max))
	}
	if b := o.Budget; b.Count < 0 || b.Percent < 0 || b.Percent > 100 || b.Window < minBudgetWindow || b.Window > maxBudgetWindow {
		errs = append(errs, fmt.Errorf("%w: count %d (at least 0), percent %d (0 to 100), window %s (%s to %s)",
			ErrBudget, b.Count, b.Percent, b.Window, minBudgetWindow, maxBudgetWindow))
	}
	if o.Etcd.EncryptionProviderConfigFilepath != "" {
		errs = append(errs, ErrEncryptionConfig)
	}
	if o.Etcd.StorageConfig.Prefix != EtcdPrefix {
		errs = append(errs, fmt.Errorf("%w, not %s", ErrEtcdPrefix, o.Etcd.StorageConfig.Prefix))
	}
	return errs
}

// validateStandalone refuses what would silently have no effect.
func (o *Options) validateStandalone() []error {
	var errs []error
	for flag, set := range map[string]bool{
		"--authentication-kubeconfig":     o.Authentication.RemoteKubeConfigFile != "",
		"--authorization-kubeconfig":      o.Authorization.RemoteKubeConfigFile != "",
		"--client-ca-file":                o.Authentication.ClientCert.ClientCA != "",
		"--requestheader-client-ca-file":  o.Authentication.RequestHeader.ClientCAFile != "",
		"--enable-admission-plugins":      len(o.Admission.EnablePlugins) > 0,
		"--admission-control-config-file": o.Admission.ConfigFile != "",
	} {
		if set {
			errs = append(errs, fmt.Errorf("%s %w", flag, ErrStandaloneFlag))
		}
	}
	return errs
}
