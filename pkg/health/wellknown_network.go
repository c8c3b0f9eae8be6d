// SPDX-License-Identifier: Apache-2.0

package health

// certificateKinds are those of cert-manager.
func certificateKinds() map[groupKind]rule {
	const group, acme = "cert-manager.io", "acme.cert-manager.io"
	out := map[groupKind]rule{
		{group, "Certificate"}:        certificate,
		{group, "CertificateRequest"}: certificateRequest,
	}
	kindsOf(out, group, conditional("Ready", meansDegraded), "Issuer", "ClusterIssuer")
	kindsOf(out, acme, phases{
		field: []string{"state"}, healthy: []string{"valid", "ready"},
		finished: []string{"invalid", "expired", "errored"}, why: "reason",
	}.rule(), "Order", "Challenge")
	return out
}

// certificate: one that is valid is healthy while it is renewed; one that could not be
// issued says so in condition Issuing, and is tried again after hours.
func certificate(o object) Verdict {
	v := byCondition(o, "Ready", stillProgressing)
	if v.State == Healthy {
		return v
	}
	for _, c := range conditionsOf(o) {
		if c.kind == "Issuing" && c.status == "False" && c.about(o) && (c.reason == "Failed" || o.status().count("failedIssuanceAttempts") > 0) {
			return degraded("not issued: %s", c.why())
		}
	}
	return v
}

func certificateRequest(o object) Verdict {
	for _, c := range conditionsOf(o) {
		switch {
		case (c.kind == "Denied" || c.kind == "InvalidRequest") && c.status == "True",
			c.kind == "Ready" && c.status == "False" && (c.reason == "Failed" || c.reason == "Denied"):
			return failed("%s", c.why())
		}
	}
	return byCondition(o, "Ready", stillProgressing)
}

// gatewayKinds are those of the Gateway API and of Istio.
func gatewayKinds() map[groupKind]rule {
	const group = "gateway.networking.k8s.io"
	out := map[groupKind]rule{
		{group, "GatewayClass"}:   conditional("Accepted", butProgressing("Pending", "Waiting")),
		{group, "Gateway"}:        gateway,
		{group, "ReferenceGrant"}: inert,
	}
	kindsOf(out, group, gateway, "ListenerSet")
	kindsOf(out, "gateway.networking.x-k8s.io", gateway, "XListenerSet")
	kindsOf(out, group, route, "HTTPRoute", "GRPCRoute", "TLSRoute", "TCPRoute", "UDPRoute")
	kindsOf(out, group, attachedPolicy, "BackendTLSPolicy")
	kindsOf(out, "networking.istio.io", analysed, "VirtualService", "DestinationRule", "Gateway", "ServiceEntry", "Sidecar",
		"EnvoyFilter", "WorkloadEntry", "WorkloadGroup", "ProxyConfig")
	kindsOf(out, "security.istio.io", analysed, "AuthorizationPolicy", "PeerAuthentication", "RequestAuthentication")
	kindsOf(out, "telemetry.istio.io", analysed, "Telemetry")
	kindsOf(out, "extensions.istio.io", analysed, "WasmPlugin")
	return out
}

// gateway: accepted, and working in the data plane. Versions before v1 have other words for
// the two, which count where the newer one is missing.
func gateway(o object) Verdict {
	conditions := conditionsOf(o)
	accepted, programmed := "Accepted", "Programmed"
	if _, there := find(conditions, accepted); !there {
		if _, older := find(conditions, "Scheduled"); older {
			accepted = "Scheduled"
		}
	}
	if _, there := find(conditions, programmed); !there {
		if _, older := find(conditions, "Ready"); older {
			programmed = "Ready"
		}
	}
	v := byCondition(o, accepted, butProgressing("Pending", "Waiting"))
	if v.State != Healthy {
		return v
	}
	return byCondition(o, programmed, butProgressing("Pending", "Waiting", "AddressNotAssigned"))
}

// analysed: configuration of Istio has a status only where its analysis has something to
// say.
func analysed(o object) Verdict {
	for _, item := range o.status().list("validationMessages") {
		raw, ok := item.(map[string]any)
		if !ok {
			continue
		}
		level := object(raw)["level"]
		if level == "Error" || level == "ERROR" {
			kind := object(raw).fields("type")
			return degraded("%s", joined(joinedFirst(kind.text("name"), "analysis"), joinedFirst(kind.text("code"), object(raw).text("documentationUrl"))))
		}
	}
	return healthy()
}
