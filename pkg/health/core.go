// SPDX-License-Identifier: Apache-2.0

package health

import "encoding/json"

func service(o object) Verdict {
	spec := o.spec()
	if spec.text("type") != "LoadBalancer" || len(spec.list("externalIPs")) > 0 {
		return healthy()
	}
	for _, item := range o.status().fields("loadBalancer").list("ingress") {
		if raw, ok := item.(map[string]any); ok && joinedFirst(object(raw).text("ip"), object(raw).text("hostname")) != "" {
			return healthy()
		}
	}
	return progressing("waits for an address of its load balancer")
}

// annotations of a claim by which one sees how far it has come.
const (
	selectedNode    = "volume.kubernetes.io/selected-node"
	provisioner     = "volume.kubernetes.io/storage-provisioner"
	provisionerBeta = "volume.beta.kubernetes.io/storage-provisioner"
)

func claim(o object) Verdict {
	switch phase := o.status().text("phase"); phase {
	case "Bound":
		return healthy()
	case "Lost":
		if name := o.spec().text("volumeName"); name != "" {
			return failed("its volume %s is lost", name)
		}
		return failed("its volume is lost, and it does not say which that was")
	case "Pending", "":
		notes := o.meta().fields("annotations")
		switch by := joinedFirst(notes.text(provisioner), notes.text(provisionerBeta)); {
		case by != "":
			return progressing("waits for a volume of %s", by)
		case notes.text(selectedNode) != "":
			return progressing("waits for a volume on node %s", notes.text(selectedNode))
		case o.spec().text("volumeName") != "":
			return progressing("waits for volume %s", o.spec().text("volumeName"))
		}
		return progressing("no volume was asked for yet: it waits for its first consumer, or for a volume that fits")
	default:
		return Verdict{State: Unknown, Message: "phase is " + phase}
	}
}

func joinedFirst(texts ...string) string {
	for _, text := range texts {
		if text != "" {
			return text
		}
	}
	return ""
}

func volume(o object) Verdict {
	switch st := o.status(); st.text("phase") {
	case "Failed":
		return degraded("%s", joined(joinedFirst(st.text("reason"), "cannot be reclaimed"), st.text("message")))
	case "Pending", "":
		return progressing("is not available yet")
	case "Available", "Bound", "Released":
		return healthy() // what is released is kept for somebody
	default:
		return Verdict{State: Unknown, Message: "phase is " + st.text("phase")}
	}
}

func namespace(o object) Verdict {
	if o.status().text("phase") == "Terminating" {
		return Verdict{State: Terminating, Message: "is being deleted"}
	}
	return healthy()
}

func node(o object) Verdict {
	return byCondition(o, "Ready", stillProgressing)
}

func autoscaler(o object) Verdict {
	conditions := scalerConditions(o)
	for _, kind := range []string{"AbleToScale", "ScalingActive"} {
		c, there := find(conditions, kind)
		if !there {
			continue
		}
		if v, is := unscaled(c); is {
			return v
		}
	}
	if len(conditions) == 0 && (o.text("apiVersion") != "autoscaling/v1" || o.status().count("currentReplicas")+o.status().count("desiredReplicas") == 0) {
		return progressing("its controller has not looked at it yet")
	}
	return healthy()
}

// cannotScale: of an autoscaler whose target is not there the controller writes this
// condition and nothing else.
func cannotScale(o object) (Verdict, bool) {
	c, there := find(scalerConditions(o), "AbleToScale")
	if !there {
		return Verdict{}, false
	}
	return unscaled(c)
}

// scalerConditions of an autoscaler. Version v1 has no field for them: the server writes
// them into an annotation.
func scalerConditions(o object) []condition {
	if o.text("apiVersion") != "autoscaling/v1" {
		return conditionsOf(o)
	}
	text := o.meta().fields("annotations").text("autoscaling.alpha.kubernetes.io/conditions")
	if text == "" || len(text) > maxAnnotation {
		return nil
	}
	var list []any
	if err := json.Unmarshal([]byte(text), &list); err != nil {
		return nil // somebody's own text: it counts as not there
	}
	return conditionsOf(object{"status": map[string]any{"conditions": list}})
}

// unscaled says whether a condition of an autoscaler is a fault.
func unscaled(c condition) (Verdict, bool) {
	if c.status != "False" || c.reason == "ScalingDisabled" {
		return Verdict{}, false // who sets the replicas to 0 wants no scaling
	}
	v := degraded("%s", c.why())
	if since := c.since(); !since.IsZero() {
		v.Grace = since.Add(metricsWithin)
	}
	return v, true
}

// disruptionBudget: how few pods may go is no fault of the budget, which has to be there
// before the pods, too.
func disruptionBudget(o object) Verdict {
	if v, unseen := notSeen(o); unseen {
		return v
	}
	if v, is := cannotCount(o); is {
		return v
	}
	return healthy()
}

// cannotCount: it cannot be worked out how many pods a budget is about.
func cannotCount(o object) (Verdict, bool) {
	for _, c := range conditionsOf(o) {
		if c.kind == "DisruptionAllowed" && c.status == "False" && c.reason == "SyncFailed" {
			return degraded("%s", c.why()), true
		}
	}
	return Verdict{}, false
}

func definition(o object) Verdict {
	established, going := false, ""
	for _, c := range conditionsOf(o) {
		switch {
		case c.kind == "NamesAccepted" && c.status == "False":
			return degraded("its names are taken: %s", c.why())
		case c.kind == "Established" && c.status == "True":
			established = true
		case c.kind == "Terminating" && c.status == "True":
			going = joined("its objects are being deleted", c.why())
		}
	}
	if going != "" {
		return Verdict{State: Terminating, Message: going}
	}
	if !established {
		return progressing("is not served yet")
	}
	return healthy()
}

func apiService(o object) Verdict {
	if o.spec().fields("service") == nil {
		return healthy() // served by the API server itself
	}
	return byCondition(o, "Available", stillProgressing)
}

func signingRequest(o object) Verdict {
	approved := false
	for _, c := range conditionsOf(o) {
		switch {
		case c.status != "True":
		case c.kind == "Denied", c.kind == "Failed":
			return failed("%s: %s", c.kind, c.why())
		case c.kind == "Approved":
			approved = true
		}
	}
	switch {
	case o.status().text("certificate") != "":
		return healthy()
	case approved:
		return progressing("waits for its certificate")
	}
	return progressing("waits for approval")
}

func flowSchema(o object) Verdict {
	for _, c := range conditionsOf(o) {
		if c.kind == "Dangling" && c.status == "True" {
			return degraded("%s", c.why())
		}
	}
	return healthy()
}

func snapshot(o object) Verdict {
	st := o.status()
	switch {
	case st.is("readyToUse"):
		return healthy()
	case st.fields("error") != nil:
		return degraded("%s", joined("no snapshot", st.fields("error").text("message")))
	}
	return progressing("waits for the snapshot")
}
