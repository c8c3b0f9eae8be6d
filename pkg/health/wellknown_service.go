// SPDX-License-Identifier: Apache-2.0

package health

// monitoringKinds are those of the Prometheus operator.
func monitoringKinds() map[groupKind]rule {
	const group = "monitoring.coreos.com"
	out := map[groupKind]rule{}
	kindsOf(out, group, pausedBy(suspendField("paused"), monitored), "Prometheus", "PrometheusAgent", "Alertmanager", "ThanosRuler")
	kindsOf(out, group, bindings, "ServiceMonitor", "PodMonitor", "Probe", "ScrapeConfig", "PrometheusRule", "AlertmanagerConfig")
	return out
}

// monitored: Reconciled says whether the operator could do its part, Available whether the
// pods run; the latter can be True, Degraded and False.
func monitored(o object) Verdict {
	if _, there := o.status().number("availableReplicas"); there && len(conditionsOf(o)) == 0 {
		return counted(o) // older operators have no conditions
	}
	v := byCondition(o, "Reconciled", meansDegraded)
	if v.State != Healthy {
		return v
	}
	return byCondition(o, "Available", func(c condition) Verdict {
		if c.status == "False" && c.reason != "NoPodReady" && c.reason != "SomePodsNotReady" {
			return degraded("%s", c.why())
		}
		return progressing("%s", c.why())
	})
}

func counted(o object) Verdict {
	want, available := o.spec().countOr("replicas", 1), o.status().count("availableReplicas")
	if available < want {
		return progressing("%d of %d pods are available", available, want)
	}
	return healthy()
}

// bindings: who uses a configuration says in its status whether it was accepted. Older
// operators write none.
func bindings(o object) Verdict {
	for _, item := range o.status().list("bindings") {
		raw, ok := item.(map[string]any)
		if !ok {
			continue
		}
		for _, c := range conditionsOf(object{"status": raw}) {
			if c.kind == "Accepted" && c.status == "False" && c.about(o) {
				return degraded("not accepted by %s: %s", object(raw).text("name"), c.why())
			}
		}
	}
	return healthy()
}

// servingKinds are those of Knative and KEDA.
func servingKinds() map[groupKind]rule {
	out := map[groupKind]rule{}
	// Knative: False is a fault, Unknown is work in progress.
	knative := conditional("Ready", meansDegraded)
	kindsOf(out, "serving.knative.dev", knative, "Service", "Configuration", "Revision", "Route", "DomainMapping")
	kindsOf(out, "eventing.knative.dev", knative, "Broker", "Trigger")
	kindsOf(out, "messaging.knative.dev", knative, "Channel", "InMemoryChannel", "Subscription")
	kindsOf(out, "flows.knative.dev", knative, "Sequence", "Parallel")
	kindsOf(out, "sources.knative.dev", knative, "PingSource", "ApiServerSource", "ContainerSource", "SinkBinding")
	kindsOf(out, "operator.knative.dev", conditional("Ready", stillProgressing), "KnativeServing", "KnativeEventing")
	kindsOf(out, "keda.sh", keda, "ScaledObject", "ScaledJob")
	kindsOf(out, "keda.sh", inert, "TriggerAuthentication", "ClusterTriggerAuthentication")
	return out
}

func keda(o object) Verdict {
	notes := o.meta().fields("annotations")
	if _, fixed := notes["autoscaling.keda.sh/paused-replicas"]; fixed || notes.text("autoscaling.keda.sh/paused") == "true" {
		return suspended("an annotation stops the scaling")
	}
	conditions := conditionsOf(o)
	if c, is := isTrue(conditions, "Paused"); is {
		return suspended("%s", c.why())
	}
	if c, is := isTrue(conditions, "Fallback"); is {
		return degraded("scales by its fallback: %s", c.why())
	}
	return byCondition(o, "Ready", meansDegraded)
}

// policyKinds are those of external-secrets, Sealed Secrets and Kyverno.
func policyKinds() map[groupKind]rule {
	out := map[groupKind]rule{}
	const secrets = "external-secrets.io"
	kindsOf(out, secrets, conditional("Ready", meansDegraded), "ExternalSecret", "ClusterExternalSecret", "PushSecret", "ClusterPushSecret", "SecretStore", "ClusterSecretStore")
	kindsOf(out, "bitnami.com", conditional("Synced", meansDegraded), "SealedSecret")
	kindsOf(out, "kyverno.io", kyverno, "ClusterPolicy", "Policy")
	kindsOf(out, "kyverno.io", inert, "PolicyException", "ClusterCleanupPolicy", "CleanupPolicy", "GlobalContextEntry")
	return out
}

// kyverno: older versions have a field in place of the condition.
func kyverno(o object) Verdict {
	if len(conditionsOf(o)) == 0 && o.status().is("ready") {
		return healthy()
	}
	return byCondition(o, "Ready", stillProgressing)
}
