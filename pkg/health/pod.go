// SPDX-License-Identifier: Apache-2.0

package health

// stuck are reasons of a waiting container that do not pass without a change, or come
// back again and again.
var stuck = map[string]bool{
	"CrashLoopBackOff": true, "ImagePullBackOff": true, "ErrImagePull": true, "ErrImageNeverPull": true,
	"InvalidImageName": true, "ImageInspectError": true, "RegistryUnavailable": true, "SignatureValidationFailed": true,
	"CreateContainerConfigError": true, "CreateContainerError": true, "RunContainerError": true,
}

func pod(o object) Verdict {
	st := o.status()
	switch st.text("phase") {
	case "Succeeded":
		return healthy()
	case "Failed":
		return failed("%s", podFailure(o))
	}
	for _, list := range []string{"initContainerStatuses", "containerStatuses"} {
		for _, item := range st.list(list) {
			raw, ok := item.(map[string]any)
			if !ok {
				continue
			}
			waiting := object(raw).fields("state", "waiting")
			if reason := waiting.text("reason"); stuck[reason] {
				return degraded("container %s: %s", object(raw).text("name"), joined(reason, waiting.text("message")))
			}
		}
	}
	if st.text("phase") == "Unknown" {
		return Verdict{State: Unknown, Message: joined("its node does not answer", st.text("message"))}
	}
	conditions := conditionsOf(o)
	if c, is := find(conditions, "PodScheduled"); is && c.status == "False" {
		return progressing("no node for it yet: %s", c.why())
	}
	switch c, is := find(conditions, "Ready"); {
	case is && c.status == "True":
		return healthy()
	case is:
		return progressing("is not ready: %s", c.why())
	}
	return progressing("phase is %s", orNone(st.text("phase")))
}

// podFailure says why a pod has failed.
func podFailure(o object) string {
	st := o.status()
	if reason := st.text("reason"); reason != "" {
		return joined(reason, st.text("message"))
	}
	for _, list := range []string{"initContainerStatuses", "containerStatuses"} {
		for _, item := range st.list(list) {
			raw, ok := item.(map[string]any)
			if !ok {
				continue
			}
			ended := object(raw).fields("state", "terminated")
			if code, told := ended.number("exitCode"); told && code != 0 {
				return progressing("container %s ended with code %d: %s", object(raw).text("name"), code, joined(ended.text("reason"), ended.text("message"))).Message
			}
		}
	}
	return joined("failed", st.text("message"))
}

// joined puts a reason and a message together.
func joined(reason, message string) string {
	switch {
	case message == "":
		return reason
	case reason == "":
		return message
	}
	return reason + ": " + message
}

func orNone(text string) string {
	if text == "" {
		return "not set yet"
	}
	return text
}

// job: what has ended has ended, whatever else its conditions say, in whatever order.
func job(o object) Verdict {
	var ending string
	stopped := o.spec().is("suspend")
	for _, c := range conditionsOf(o) {
		if c.status != "True" {
			continue
		}
		switch c.kind {
		case "Failed":
			return failed("%s", c.why())
		case "Complete":
			return healthy()
		case "FailureTarget":
			ending = "is about to fail: " + c.why()
		case "Suspended":
			stopped = true
		}
	}
	if stopped {
		return suspended("the job is suspended")
	}
	if ending != "" {
		return progressing("%s", ending)
	}
	st := o.status()
	return progressing("runs: %d of %d pods have succeeded, %d have failed, %d run",
		st.count("succeeded"), o.spec().countOr("completions", 1), st.count("failed"), st.count("active"))
}

func cronJob(o object) Verdict {
	if o.spec().is("suspend") {
		return suspended("makes no jobs while it is suspended")
	}
	return healthy()
}
