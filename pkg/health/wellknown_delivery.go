// SPDX-License-Identifier: Apache-2.0

package health

import "strconv"

// argoKinds are those of Argo: Rollouts, CD and Workflows.
func argoKinds() map[groupKind]rule {
	const group = "argoproj.io"
	run := phases{
		field: []string{"phase"}, healthy: []string{"Successful"}, finished: []string{"Failed", "Error", "Inconclusive"}, why: "message",
	}
	out := map[groupKind]rule{
		{group, "Rollout"}:     rollout,
		{group, "AnalysisRun"}: run.rule(),
		{group, "Experiment"}:  run.rule(),
		{group, "Application"}: application,
		{group, "AppProject"}:  inert,
		{group, "Workflow"}: pausedBy(suspendField("suspend"), phases{
			field: []string{"phase"}, healthy: []string{"Succeeded"}, finished: []string{"Failed", "Error"}, why: "message",
		}.rule()),
		{group, "CronWorkflow"}:   pausedBy(suspendField("suspend"), cronWorkflow),
		{group, "ApplicationSet"}: applicationSet,
	}
	kindsOf(out, group, inert, "WorkflowTemplate", "ClusterWorkflowTemplate", "AnalysisTemplate", "ClusterAnalysisTemplate")
	return out
}

// rollout: its observedGeneration is a text; in old versions that of a hash, which tells
// nothing of a generation.
func rollout(o object) Verdict {
	st := o.status()
	if generation, has := o.meta().number("generation"); has {
		if observed, err := strconv.ParseInt(st.text("observedGeneration"), 10, 64); err == nil && observed < generation {
			return progressing("generation %d is not observed yet, the status is about %d", generation, observed)
		}
	}
	switch phase := st.text("phase"); phase {
	case "":
		return oldRollout(o)
	case "Healthy":
		return healthy()
	case "Degraded":
		return failed("%s", joined("degraded", st.text("message")))
	case "Paused":
		return suspended("%s", joined("paused", st.text("message")))
	default:
		if o.spec().is("paused") {
			return suspended("the rollout is paused")
		}
		return progressing("%s", joined(phase, st.text("message")))
	}
}

// oldRollout: versions without a phase tell by conditions and counts how far they are.
func oldRollout(o object) Verdict {
	st, conditions := o.status(), conditionsOf(o)
	if len(conditions) == 0 {
		return progressing("its controller has not looked at it yet")
	}
	if c, is := isTrue(conditions, "InvalidSpec"); is {
		return failed("%s", c.why())
	}
	if c, there := find(conditions, "Progressing"); there && c.status == "False" && (c.reason == "ProgressDeadlineExceeded" || c.reason == "RolloutAborted") {
		return failed("%s", c.why())
	}
	if o.spec().is("paused") || len(st.list("pauseConditions")) > 0 {
		return suspended("the rollout is paused")
	}
	if v := rolledOut(o); v.State != Healthy {
		return v
	}
	if stable, current := st.text("stableRS"), st.text("currentPodHash"); stable != current {
		return progressing("the newest template is not the stable one yet")
	}
	return healthy()
}

func application(o object) Verdict {
	st := o.status()
	operation := st.fields("operationState")
	switch operation.text("phase") {
	case "Running", "Terminating":
		return progressing("%s", joined("an operation runs", operation.text("message")))
	case "Failed", "Error":
		return degraded("%s", joined("the last operation failed", operation.text("message")))
	}
	h := st.fields("health")
	switch word := h.text("status"); word {
	case "Healthy":
		return healthy()
	case "Degraded":
		return degraded("%s", joined(word, h.text("message")))
	case "Suspended":
		return suspended("%s", joined(word, h.text("message")))
	case "Unknown":
		return Verdict{State: Unknown, Message: joined("Argo CD cannot tell", h.text("message"))}
	default:
		return progressing("%s", joined(orNone(word), h.text("message")))
	}
}

func applicationSet(o object) Verdict {
	for _, c := range conditionsOf(o) {
		if c.kind == "ErrorOccurred" && c.status == "True" {
			return degraded("%s", c.why())
		}
	}
	return byCondition(o, "ResourcesUpToDate", stillProgressing)
}

func cronWorkflow(o object) Verdict {
	for _, c := range conditionsOf(o) {
		if c.kind == "SubmissionError" && c.status == "True" {
			return degraded("%s", c.why())
		}
	}
	return healthy()
}

// fluxKinds are those of Flux.
func fluxKinds() map[groupKind]rule {
	out := map[groupKind]rule{}
	ready := pausedBy(suspendField("suspend"), fluxReady)
	kindsOf(out, "source.toolkit.fluxcd.io", ready, "GitRepository", "OCIRepository", "Bucket", "HelmChart", "ExternalArtifact")
	kindsOf(out, "source.toolkit.fluxcd.io", pausedBy(suspendField("suspend"), func(o object) Verdict {
		if o.spec().text("type") == "oci" {
			return healthy() // such a one is only looked up by others and has no status
		}
		return fluxReady(o)
	}), "HelmRepository")
	kindsOf(out, "kustomize.toolkit.fluxcd.io", ready, "Kustomization")
	kindsOf(out, "helm.toolkit.fluxcd.io", ready, "HelmRelease")
	kindsOf(out, "image.toolkit.fluxcd.io", ready, "ImageRepository", "ImagePolicy", "ImageUpdateAutomation")
	kindsOf(out, "notification.toolkit.fluxcd.io", ready, "Receiver")
	kindsOf(out, "notification.toolkit.fluxcd.io", pausedBy(suspendField("suspend"), func(o object) Verdict {
		if len(conditionsOf(o)) == 0 {
			return healthy() // newer versions give these no status
		}
		return fluxReady(o)
	}), "Alert", "Provider")
	return out
}

func fluxReady(o object) Verdict {
	reconciling := false
	for _, c := range conditionsOf(o) {
		switch {
		case !c.about(o):
		case c.kind == "Stalled" && c.status == "True":
			return failed("%s", c.why())
		case c.kind == "Reconciling" && c.status == "True":
			reconciling = true
		}
	}
	v := byCondition(o, "Ready", butProgressing("Progressing", "ProgressingWithRetry", "DependencyNotReady", "ArtifactNotReady"))
	if v.State == Degraded && reconciling {
		v.State = Progressing
	}
	return v
}
