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
	kindsOf(out, group, attached("parents"), "HTTPRoute", "GRPCRoute", "TLSRoute", "TCPRoute", "UDPRoute")
	kindsOf(out, group, attached("ancestors"), "BackendTLSPolicy")
	kindsOf(out, "networking.istio.io", analysed, "VirtualService", "DestinationRule", "Gateway", "ServiceEntry", "Sidecar",
		"EnvoyFilter", "WorkloadEntry", "WorkloadGroup", "ProxyConfig")
	kindsOf(out, "security.istio.io", analysed, "AuthorizationPolicy", "PeerAuthentication", "RequestAuthentication")
	kindsOf(out, "telemetry.istio.io", analysed, "Telemetry")
	kindsOf(out, "extensions.istio.io", analysed, "WasmPlugin")
	return out
}

// gateway: accepted, and working in the data plane.
func gateway(o object) Verdict {
	v := byCondition(o, "Accepted", butProgressing("Pending", "Waiting"))
	if v.State != Healthy {
		return v
	}
	return byCondition(o, "Programmed", butProgressing("Pending", "Waiting", "AddressNotAssigned"))
}

// attached judges a route or policy: each parent says by itself what it thinks of it.
func attached(list string) rule {
	return func(o object) Verdict {
		parents := o.status().list(list)
		if len(parents) == 0 {
			return progressing("no gateway has taken it yet")
		}
		waiting := healthy()
		for _, item := range parents {
			raw, ok := item.(map[string]any)
			if !ok {
				continue
			}
			name := object(raw).fields("parentRef").text("name")
			if list == "ancestors" {
				name = object(raw).fields("ancestorRef").text("name")
			}
			switch v := ofParent(o, raw, name); v.State {
			case Healthy:
			case Degraded:
				return v
			default:
				waiting = v
			}
		}
		return waiting
	}
}

func ofParent(o object, parent map[string]any, name string) Verdict {
	// The conditions have the usual shape, only deeper.
	as := object{"metadata": o["metadata"], "status": parent}
	v := byCondition(as, "Accepted", butProgressing("Pending"))
	for _, c := range conditionsOf(as) {
		switch {
		case v.State != Healthy || !c.about(o):
		case c.kind == "ResolvedRefs" && c.status == "False", c.kind == "PartiallyInvalid" && c.status == "True":
			v = degraded("%s", c.why())
		}
	}
	if v.State != Healthy {
		v.Message = "gateway " + orNone(name) + ": " + v.Message
	}
	return v
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
