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
	summary, conditions := "", conditionsOf(o)
	for _, kind := range []string{"Available", "Ready", "RemediationAllowed"} {
		if _, there := find(conditions, kind); there {
			summary = kind
			break
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
