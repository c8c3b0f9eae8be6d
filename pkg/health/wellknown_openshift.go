// SPDX-License-Identifier: Apache-2.0

package health

// openShiftKinds are those of OpenShift, and of the Operator Lifecycle Manager.
func openShiftKinds() map[groupKind]rule {
	const operators = "operators.coreos.com"
	return map[groupKind]rule{
		{"apps.openshift.io", "DeploymentConfig"}: deploymentConfig,
		{"route.openshift.io", "Route"}:           openShiftRoute,
		{operators, "ClusterServiceVersion"}: phases{
			field: []string{"phase"}, healthy: []string{"Succeeded"}, degraded: []string{"Failed"}, why: "message",
		}.rule(),
		{operators, "InstallPlan"}: phases{
			field: []string{"phase"}, healthy: []string{"Complete"}, suspended: []string{"RequiresApproval"}, finished: []string{"Failed"}, why: "message",
		}.rule(),
		{operators, "Subscription"}: operatorSubscription,
	}
}

// deploymentConfig: as a Deployment, but that somebody can end a rollout.
func deploymentConfig(o object) Verdict {
	if v, unseen := notSeen(o); unseen {
		return v
	}
	conditions := conditionsOf(o)
	progress, told := find(conditions, "Progressing")
	if told && progress.status == "False" && progress.reason == "ProgressDeadlineExceeded" {
		return failed("%s", progress.why())
	}
	if o.spec().is("paused") {
		return suspended("the rollout is paused")
	}
	if v, refused := replicaFailure(conditions); refused {
		return v
	}
	if told && progress.status == "False" && (progress.reason == "ReplicationControllerCreateError" || progress.reason == "RolloutCancelled") {
		return degraded("%s", progress.why())
	}
	if o.spec().is("test") {
		return healthy() // its pods run only while it is tried out
	}
	return rolledOut(o)
}

// openShiftRoute: a router that refuses a host says so. Which routers there are, and whether
// they write a status at all, cannot be seen from here.
func openShiftRoute(o object) Verdict {
	for _, item := range o.status().list("ingress") {
		raw, ok := item.(map[string]any)
		if !ok {
			continue
		}
		if c, there := find(conditionsOf(object{"status": raw}), "Admitted"); there && c.status == "False" {
			return degraded("router %s does not admit it: %s", orNone(object(raw).text("routerName")), c.why())
		}
	}
	return healthy()
}

// operatorSubscription: an upgrade that somebody has to approve waits for that person.
func operatorSubscription(o object) Verdict {
	for _, kind := range []string{"ResolutionFailed", "BundleUnpackFailed", "InstallPlanFailed", "CatalogSourcesUnhealthy"} {
		if c, is := isTrue(conditionsOf(o), kind); is {
			return degraded("%s", c.why())
		}
	}
	switch word := o.status().text("state"); word {
	case "AtLatestKnown":
		return healthy()
	case "UpgradeFailed":
		return degraded("the upgrade has failed")
	case "UpgradeAvailable", "UpgradePending":
		if o.spec().text("installPlanApproval") == "Manual" {
			return suspended("%s waits for approval", orNone(o.status().text("currentCSV")))
		}
		return progressing("%s", word)
	case "":
		return progressing("its status is not there yet")
	default:
		return progressing("%s", word)
	}
}
