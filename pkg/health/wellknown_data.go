// SPDX-License-Identifier: Apache-2.0

package health

// dataKinds are those of databases, brokers and storage.
func dataKinds() map[groupKind]rule {
	out := map[groupKind]rule{}
	kindsOf(out, "kafka.strimzi.io", pausedBy(annotated("strimzi.io/pause-reconciliation", "true"), strimzi),
		"Kafka", "KafkaNodePool", "KafkaTopic", "KafkaUser", "KafkaConnect", "KafkaConnector", "KafkaBridge", "KafkaMirrorMaker2", "KafkaRebalance")
	postgres(out)
	kindsOf(out, "elasticsearch.k8s.elastic.co", elastic, "Elasticsearch")
	kindsOf(out, "kibana.k8s.elastic.co", elastic, "Kibana")
	kindsOf(out, "longhorn.io", phases{
		field: []string{"robustness"}, healthy: []string{"healthy", "unknown"}, degraded: []string{"degraded"}, finished: []string{"faulted"},
	}.rule(), "Volume")
	kindsOf(out, "ceph.rook.io", phases{
		field: []string{"phase"}, healthy: []string{"Ready", "Connected", "Created"}, degraded: []string{"Failure", "Error"}, why: "message",
	}.rule(), "CephCluster", "CephBlockPool", "CephFilesystem", "CephObjectStore", "CephObjectStoreUser", "CephClient")
	kindsOf(out, "kubevirt.io", phases{
		field: []string{"printableStatus"}, healthy: []string{"Running", "Stopped"}, suspended: []string{"Paused"},
		degraded: []string{"CrashLoopBackOff", "ErrorUnschedulable", "ErrImagePull", "ImagePullBackOff", "ErrorPvcNotFound", "DataVolumeError"},
	}.rule(), "VirtualMachine")
	return out
}

// strimzi: a fault is its own condition, NotReady, beside reasons of being made.
func strimzi(o object) Verdict {
	conditions := conditionsOf(o)
	if c, is := isTrue(conditions, "ReconciliationPaused"); is {
		return suspended("%s", joinedFirst(c.message, "the reconciliation is paused"))
	}
	if c, is := isTrue(conditions, "NotReady"); is {
		if c.reason == "Creating" {
			return progressing("%s", c.why())
		}
		return degraded("%s", c.why())
	}
	if _, told := find(conditions, "Ready"); !told && o.text("kind") == "KafkaNodePool" && o.status().list("nodeIds") != nil {
		return healthy() // pools have none but warnings: their Kafka speaks for them
	}
	if o.text("kind") == "KafkaRebalance" {
		return rebalance(conditions)
	}
	return byCondition(o, "Ready", stillProgressing)
}

// rebalance: the state is the type of the condition that is True.
func rebalance(conditions []condition) Verdict {
	for _, c := range conditions {
		if c.status != "True" {
			continue
		}
		switch c.kind {
		case "Ready":
			return healthy()
		case "ProposalReady", "Stopped":
			return suspended("%s", c.why())
		}
	}
	return progressing("the rebalance is under way")
}

// postgres are the kinds of CloudNativePG.
func postgres(out map[groupKind]rule) {
	const group = "postgresql.cnpg.io"
	out[groupKind{group, "Cluster"}] = postgresCluster
	out[groupKind{group, "Backup"}] = phases{
		field: []string{"phase"}, healthy: []string{"completed"}, finished: []string{"failed", "walArchivingFailing"}, why: "error",
	}.rule()
	out[groupKind{group, "ScheduledBackup"}] = pausedBy(suspendField("suspend"), inert)
	kindsOf(out, group, func(o object) Verdict {
		switch applied, told := o.status()["applied"].(bool); {
		case applied:
			return healthy()
		case told:
			return degraded("%s", joined("not applied", o.status().text("message")))
		}
		return progressing("is not applied yet")
	}, "Database", "Publication", "Subscription")
	out[groupKind{group, "Pooler"}] = func(o object) Verdict {
		if want, ready := o.spec().countOr("instances", 1), o.status().count("instances"); ready < want {
			return progressing("%d of %d instances", ready, want)
		}
		return healthy()
	}
}

// postgresOver are phases of CloudNativePG in which it does nothing more by itself.
var postgresOver = set(
	"Cluster is unrecoverable and needs manual intervention",
	"Cluster is in an unrecoverable state, needs manual intervention",
	"Cluster cannot proceed to reconciliation due to an unknown plugin being required",
	"Cluster has incomplete or invalid image catalog",
	"Cluster cannot execute instance online upgrade due to missing architecture binary",
	"Unable to create required cluster objects",
)

func postgresCluster(o object) Verdict {
	st := o.status()
	phase := st.text("phase")
	for _, c := range conditionsOf(o) {
		if c.kind == "cnpg.io/hibernation" && c.status == "True" {
			return suspended("the cluster hibernates")
		}
	}
	switch {
	case postgresOver[phase]:
		return failed("%s", joined(phase, st.text("phaseReason")))
	case phase == "Waiting for user action":
		return suspended("%s", joined(phase, st.text("phaseReason")))
	}
	if want, ready := o.spec().countOr("instances", 1), st.count("readyInstances"); ready < want {
		return progressing("%d of %d instances are ready: %s", ready, want, joined(orNone(phase), st.text("phaseReason")))
	}
	if _, told := find(conditionsOf(o), "Ready"); !told && phase == "Cluster in healthy state" {
		return healthy() // older versions have no conditions
	}
	return byCondition(o, "Ready", func(c condition) Verdict {
		return progressing("%s: %s", orNone(phase), c.why())
	})
}

// elastic: kinds of ECK tell the health of what they run by a colour.
func elastic(o object) Verdict {
	st := o.status()
	if st.text("phase") == "Invalid" {
		return failed("the specification is invalid")
	}
	switch colour := st.text("health"); {
	case colour == "red":
		return degraded("health is red")
	case colour == "green" && (st.text("phase") == "Ready" || o.text("kind") == "Kibana"):
		return healthy()
	default:
		return progressing("health is %s, phase is %s", orNone(colour), orNone(st.text("phase")))
	}
}
