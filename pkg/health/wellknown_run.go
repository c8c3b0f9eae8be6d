// SPDX-License-Identifier: Apache-2.0

package health

// runKinds end by themselves: those of Tekton and Velero.
func runKinds() map[groupKind]rule {
	out := map[groupKind]rule{}
	kindsOf(out, "tekton.dev", tektonRun, "PipelineRun", "TaskRun", "CustomRun", "Run")
	kindsOf(out, "tekton.dev", inert, "Pipeline", "Task", "ClusterTask", "StepAction")
	const velero = "velero.io"
	kindsOf(out, velero, phases{
		field: []string{"phase"}, healthy: []string{"Completed"},
		finished: []string{"PartiallyFailed", "Failed", "FailedValidation"}, why: "failureReason",
	}.rule(), "Backup", "Restore", "PodVolumeBackup", "PodVolumeRestore", "DataUpload", "DataDownload")
	kindsOf(out, velero, phases{
		field: []string{"phase"}, healthy: []string{"Available"}, degraded: []string{"Unavailable"}, why: "message",
	}.rule(), "BackupStorageLocation")
	kindsOf(out, velero, phases{
		field: []string{"phase"}, healthy: []string{"Ready"}, degraded: []string{"NotReady"}, why: "message",
	}.rule(), "BackupRepository")
	kindsOf(out, velero, pausedBy(suspendField("paused"), phases{
		field: []string{"phase"}, healthy: []string{"Enabled"}, finished: []string{"FailedValidation"},
	}.rule()), "Schedule")
	return out
}

func tektonRun(o object) Verdict {
	if o.spec().text("status") == "PipelineRunPending" {
		return suspended("the run is pending until somebody starts it")
	}
	return byCondition(o, "Succeeded", func(c condition) Verdict {
		if c.status == "False" {
			return failed("%s", c.why())
		}
		return progressing("%s", c.why())
	})
}
