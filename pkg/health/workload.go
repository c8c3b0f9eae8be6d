// SPDX-License-Identifier: Apache-2.0

package health

// notSeen: the controller has not looked at the object since it was made. Controllers of
// these kinds always say which generation their status is about.
func notSeen(o object) (Verdict, bool) {
	if _, told := o.status().number("observedGeneration"); told {
		return Verdict{}, false
	}
	return progressing("its controller has not looked at it yet"), true
}

func deployment(o object) Verdict {
	if v, unseen := notSeen(o); unseen {
		return v
	}
	conditions := conditionsOf(o)
	for _, c := range conditions {
		if c.kind == "Progressing" && c.status == "False" && c.reason == "ProgressDeadlineExceeded" {
			return failed("%s", c.why())
		}
	}
	if o.spec().is("paused") {
		return suspended("the rollout is paused")
	}
	if v, refused := replicaFailure(conditions); refused {
		return v
	}
	return rolledOut(o)
}

// rolledOut judges by the counts of a kind that replaces its pods step by step.
func rolledOut(o object) Verdict {
	st := o.status()
	want, updated, all, available := o.spec().countOr("replicas", 1), st.count("updatedReplicas"), st.count("replicas"), st.count("availableReplicas")
	switch {
	case updated < want:
		return progressing("%d of %d pods are of the newest template", updated, want)
	case all > updated:
		return progressing("%d pods of an older template are still there", all-updated)
	case all > want:
		return progressing("%d pods too many are still there", all-want)
	case available < want:
		return progressing("%d of %d pods are available", available, want)
	}
	return healthy()
}

// replicaFailure: pods are refused, as by a quota or an admission webhook. The controller
// goes on trying.
func replicaFailure(conditions []condition) (Verdict, bool) {
	for _, c := range conditions {
		if c.kind == "ReplicaFailure" && c.status == "True" {
			return degraded("pods cannot be made or deleted: %s", c.why()), true
		}
	}
	return Verdict{}, false
}

func replicaSet(o object) Verdict {
	if v, unseen := notSeen(o); unseen {
		return v
	}
	if v, refused := replicaFailure(conditionsOf(o)); refused {
		return v
	}
	st := o.status()
	want, all, available := o.spec().countOr("replicas", 1), st.count("replicas"), st.count("availableReplicas")
	switch {
	case all > want:
		return progressing("%d pods too many are still there", all-want)
	case available < want:
		return progressing("%d of %d pods are available", available, want)
	}
	return healthy()
}

func statefulSet(o object) Verdict {
	if v, unseen := notSeen(o); unseen {
		return v
	}
	st, strategy := o.status(), o.spec().fields("updateStrategy")
	want, all := o.spec().countOr("replicas", 1), st.count("replicas")
	ready := st.count("readyReplicas")
	if available, told := st.number("availableReplicas"); told {
		ready = min(ready, available)
	}
	updated := st.count("updatedReplicas")
	must := want - min(want, strategy.fields("rollingUpdate").count("partition"))
	newer := st.text("updateRevision") != "" && st.text("updateRevision") != st.text("currentRevision")
	switch {
	case all > want:
		return progressing("%d pods too many are still there", all-want)
	case ready < want:
		return progressing("%d of %d pods are available", ready, want)
	case strategy.text("type") == "OnDelete":
		return healthy() // pods are replaced when somebody deletes them
	case newer && updated < must:
		return progressing("%d of %d pods are of the newest template", updated, must)
	}
	return healthy()
}

func daemonSet(o object) Verdict {
	if v, unseen := notSeen(o); unseen {
		return v
	}
	st := o.status()
	want, there, updated, available := st.count("desiredNumberScheduled"), st.count("currentNumberScheduled"), st.count("updatedNumberScheduled"), st.count("numberAvailable")
	switch {
	case there < want:
		return progressing("%d of %d nodes have their pod", there, want)
	case o.spec().fields("updateStrategy").text("type") != "OnDelete" && updated < want:
		return progressing("%d of %d pods are of the newest template", updated, want)
	case available < want:
		return progressing("%d of %d pods are available", available, want)
	}
	return healthy()
}
