// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apiopenapi "k8s.io/apiserver/pkg/endpoints/openapi"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/apiserver/pkg/util/compatibility"
	"k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/transport"

	"kumodo.io/convoy/hub/apiserver/internal/compress"
	"kumodo.io/convoy/hub/apiserver/internal/frontproxy"
	"kumodo.io/convoy/hub/apiserver/internal/scheme"
	"kumodo.io/convoy/hub/apiserver/internal/standalone"
	"kumodo.io/convoy/hub/apiserver/openapi"
)

// informerResync of the host's objects that the admission chain looks at.
const informerResync = 10 * time.Minute

// library turns our Config into the library's.
func (c Config) library(sch *scheme.Scheme) (*genericapiserver.RecommendedConfig, error) {
	o := c.Options
	config := genericapiserver.NewRecommendedConfig(sch.Codecs)
	config.Serializer = scheme.JSONOnly(sch.Codecs)
	config.EffectiveVersion = compatibility.DefaultBuildEffectiveVersion()
	namer := apiopenapi.NewDefinitionNamer(sch.Public)
	config.OpenAPIConfig = genericapiserver.DefaultOpenAPIConfig(openapi.GetOpenAPIDefinitions, namer)
	config.OpenAPIConfig.Info.Title = "convoy"
	config.OpenAPIV3Config = genericapiserver.DefaultOpenAPIV3Config(openapi.GetOpenAPIDefinitions, namer)
	config.OpenAPIV3Config.Info.Title = "convoy"
	config.AddReadyzChecks(c.ReadyzChecks...)
	// Without it watches, of which the host holds many, are not told to end.
	config.ShutdownWatchTerminationGracePeriod = watchGrace

	if err := c.applyStorage(config, sch); err != nil {
		return nil, err
	}
	if err := c.applyServing(config); err != nil {
		return nil, err
	}
	apply := c.applyHost
	if o.Standalone {
		apply = c.applyStandalone
	}
	if err := apply(config); err != nil {
		return nil, errors.Join(err, config.SecureServing.Listener.Close())
	}
	if c.Authorizer != nil {
		config.Authorization.Authorizer = c.Authorizer
	}
	return config, nil
}

func (c Config) applyStorage(config *genericapiserver.RecommendedConfig, sch *scheme.Scheme) error {
	o := c.Options
	gvs := scheme.GroupVersions()
	o.Etcd.StorageConfig.Codec = sch.Codecs.LegacyCodec(gvs...)
	o.Etcd.StorageConfig.EncodeVersioner = schema.GroupVersions(gvs)
	if o.Standalone {
		// Nobody would ever carry out what a finalizer of the collector waits for.
		o.Etcd.EnableGarbageCollection = false
	}
	transformers, err := compress.New()
	if err != nil {
		return err
	}
	// Set before ApplyTo, which then leaves encryption alone.
	config.ResourceTransformers = transformers
	if err := o.Etcd.ApplyTo(&config.Config); err != nil {
		return fmt.Errorf("apply etcd options: %w", err)
	}
	return nil
}

func (c Config) applyServing(config *genericapiserver.RecommendedConfig) error {
	o := c.Options
	if o.SecureServing.ServerCert.CertKey.CertFile == "" {
		own, err := newServingCertificate(c.Serving, o.SecureServing.BindAddress, c.Clock, c.Logger)
		if err != nil {
			return err
		}
		o.SecureServing.ServerCert.GeneratedCert = own
	}
	if err := o.SecureServing.ApplyToConfig(&config.Config); err != nil {
		return fmt.Errorf("apply serving options: %w", err)
	}
	if err := o.Audit.ApplyTo(&config.Config); err != nil {
		return fmt.Errorf("apply audit options: %w", err)
	}
	return nil
}

// applyHost delegates authentication and authorization to the host cluster and
// runs the library's admission chain with the host's namespaces, webhooks and
// policies.
func (c Config) applyHost(config *genericapiserver.RecommendedConfig) error {
	o := c.Options
	if c.Host == nil {
		return ErrNoHost
	}
	if err := o.Authentication.ApplyTo(&config.Authentication, config.SecureServing, config.OpenAPIConfig); err != nil {
		return fmt.Errorf("apply authentication options: %w", err)
	}
	c.awaitFrontProxy(config)
	if err := o.Authorization.ApplyTo(&config.Authorization); err != nil {
		return fmt.Errorf("apply authorization options: %w", err)
	}
	client, err := kubernetes.NewForConfig(c.Host)
	if err != nil {
		return fmt.Errorf("make host client: %w", err)
	}
	dyn, err := dynamic.NewForConfig(c.Host)
	if err != nil {
		return fmt.Errorf("make dynamic host client: %w", err)
	}
	config.ClientConfig = c.Host
	config.SharedInformerFactory = informers.NewSharedInformerFactory(client, informerResync)
	if err := o.Features.ApplyTo(&config.Config, client, config.SharedInformerFactory); err != nil {
		return fmt.Errorf("apply feature options: %w", err)
	}
	if err := o.Admission.ApplyTo(&config.Config, config.SharedInformerFactory, client, dyn, feature.DefaultFeatureGate, config.EffectiveVersion); err != nil {
		return fmt.Errorf("apply admission options: %w", err)
	}
	return nil
}

// awaitFrontProxy answers 503 until it is known whom to believe who a request is from. The
// library reads that after it began to serve, and takes everybody for nobody meanwhile.
func (c Config) awaitFrontProxy(config *genericapiserver.RecommendedConfig) {
	proxy := config.Authentication.RequestHeaderConfig
	if proxy == nil {
		return // it is not looked up: nobody comes through one
	}
	gate := frontproxy.New(proxy.CAContentProvider, proxy.UsernameHeaders, c.Clock)
	chain := config.BuildHandlerChainFunc
	config.BuildHandlerChainFunc = func(handler http.Handler, config *genericapiserver.Config) http.Handler {
		return gate.Wrap(chain(handler, config))
	}
	config.AddReadyzChecks(gate)
}

// applyStandalone sets both authenticator and authorizer: without them the
// library would serve everybody. Of admission only what needs no host runs, and
// that is our own validation.
func (c Config) applyStandalone(config *genericapiserver.RecommendedConfig) error {
	ca, err := dynamiccertificates.NewStaticCAContent("hub-ca", c.HubCA)
	if err != nil {
		return fmt.Errorf("read hub CA: %w", err)
	}
	if err := config.Authentication.ApplyClientCert(ca, config.SecureServing); err != nil {
		return fmt.Errorf("believe the hub CA: %w", err)
	}
	config.Authentication.Authenticator = standalone.Authenticator(ca)
	config.Authorization.Authorizer = standalone.Authorizer()
	// Priority and fairness lives in objects of the host.
	features := *c.Options.Features
	features.EnablePriorityAndFairness = false
	if err := features.ApplyTo(&config.Config, nil, nil); err != nil {
		return fmt.Errorf("apply feature options: %w", err)
	}
	return nil
}

// newEtcdClient connects to the same etcd as the library does.
func newEtcdClient(ctx context.Context, t storagebackend.TransportConfig) (*clientv3.Client, error) {
	config := clientv3.Config{
		Endpoints:   t.ServerList,
		DialTimeout: etcdDialTimeout,
		Logger:      zap.NewNop(),
		Context:     context.WithoutCancel(ctx), // Run closes it
	}
	if t.CertFile != "" || t.TrustedCAFile != "" {
		tls, err := transport.TLSConfigFor(&transport.Config{TLS: transport.TLSConfig{
			CertFile: t.CertFile, KeyFile: t.KeyFile, CAFile: t.TrustedCAFile,
		}})
		if err != nil {
			return nil, fmt.Errorf("read etcd certificates: %w", err)
		}
		config.TLS = tls
	}
	client, err := clientv3.New(config)
	if err != nil {
		return nil, fmt.Errorf("connect to etcd: %w", err)
	}
	return client, nil
}

// localAddress is how this machine reaches a listener.
func localAddress(a net.Addr) string {
	tcp, ok := a.(*net.TCPAddr)
	if !ok {
		return a.String()
	}
	host := "127.0.0.1"
	if !tcp.IP.IsUnspecified() {
		host = tcp.IP.String()
	}
	return net.JoinHostPort(host, strconv.Itoa(tcp.Port))
}
