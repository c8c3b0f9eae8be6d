// SPDX-License-Identifier: Apache-2.0

package health

// clusterAPIKinds are those of Cluster API.
func clusterAPIKinds() map[groupKind]rule {
	const group = "cluster.x-k8s.io"
	out := map[groupKind]rule{}
	kindsOf(out, group, pausedBy(capiPaused, capi), "Cluster", "Machine", "MachineDeployment", "MachineSet", "MachinePool", "MachineHealthCheck")
	kindsOf(out, "controlplane.cluster.x-k8s.io", pausedBy(capiPaused, capi), "KubeadmControlPlane")
	kindsOf(out, "addons.cluster.x-k8s.io", pausedBy(capiPaused, inert), "ClusterResourceSet")
	return out
}

func capiPaused(o object) (string, bool) {
	if o.spec().is("paused") {
		return "spec.paused is true", true
	}
	return annotated("cluster.x-k8s.io/paused")(o)
}

// capi: the summary condition is Available in newer versions and Ready in older ones, where
// a severity tells faults from waiting; failureReason is set when nothing goes on by itself.
func capi(o object) Verdict {
	st := o.status()
	if reason := st.text("failureReason"); reason != "" {
		return failed("%s", joined(reason, st.text("failureMessage")))
	}
	if st.text("phase") == "Failed" {
		return failed("%s", joined("phase is Failed", st.text("failureMessage")))
	}
	summary := ""
	for _, c := range conditionsOf(o) {
		switch c.kind {
		case "Available", "Ready", "RemediationAllowed":
			if summary == "" || c.kind == "Available" {
				summary = c.kind
			}
		}
	}
	switch summary {
	case "":
		return progressing("its controller has not looked at it yet")
	case "RemediationAllowed":
		return healthy() // a health check that may not remediate just now does its work
	}
	return byCondition(o, summary, func(c condition) Verdict {
		if c.status == "False" && severity(o, summary) == "Error" {
			return degraded("%s", c.why())
		}
		return progressing("%s", c.why())
	})
}

func severity(o object, kind string) string {
	for _, item := range o.status().list("conditions") {
		if raw, ok := item.(map[string]any); ok && raw["type"] == kind {
			return object(raw).text("severity")
		}
	}
	return ""
}

// crossplaneKinds are Crossplane's own. What it manages has kinds without end, which
// byConvention knows by their conditions.
func crossplaneKinds() map[groupKind]rule {
	const pkg, ext = "pkg.crossplane.io", "apiextensions.crossplane.io"
	out := map[groupKind]rule{
		{ext, "CompositeResourceDefinition"}: compositeDefinition,
		{ext, "Composition"}:                 inert,
	}
	kindsOf(out, pkg, crossplanePackage, "Provider", "Configuration", "Function")
	return out
}

func crossplanePackage(o object) Verdict {
	v := byCondition(o, "Installed", butProgressing("UnpackingPackage", "InactivePackageRevision", "AwaitingVerification"))
	if v.State != Healthy {
		return v
	}
	return byCondition(o, "Healthy", meansDegraded)
}

func compositeDefinition(o object) Verdict {
	v := byCondition(o, "Established", stillProgressing)
	if v.State == Healthy && o.spec().fields("claimNames") != nil {
		return byCondition(o, "Offered", stillProgressing)
	}
	return v
}

// crossplane judges what Crossplane manages, claims and composites: conditions Synced and
// Ready together. False when the object has not both.
func crossplane(o object) (Verdict, bool) {
	var synced, ready *condition
	conditions := conditionsOf(o)
	for i := range conditions {
		switch conditions[i].kind {
		case "Synced":
			synced = &conditions[i]
		case "Ready":
			ready = &conditions[i]
		}
	}
	switch {
	case synced == nil:
		return Verdict{}, false
	case synced.reason == "ReconcilePaused":
		return suspended("%s", synced.why()), true
	case ready == nil:
		return Verdict{}, false
	case synced.status == "False":
		return degraded("%s", synced.why()), true
	case !synced.about(o) || !ready.about(o):
		return progressing("its conditions are about an older generation"), true
	case ready.status == "True":
		return healthy(), true
	case ready.status == "False" && ready.reason == "Unavailable":
		return degraded("%s", ready.why()), true
	}
	return progressing("%s", ready.why()), true
}
