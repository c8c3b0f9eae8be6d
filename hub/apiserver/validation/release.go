// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"fmt"
	"strings"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"kumodo.io/convoy/api/core/v1alpha1"
)

// Release checks one that is to be created or updated.
func Release(r *v1alpha1.Release) field.ErrorList {
	errs := objectName(r.Name, apivalidation.NameIsDNSSubdomain)
	errs = append(errs, ReleaseSpec(&r.Spec, field.NewPath("spec"))...)
	if helm := r.Spec.Content.Helm; helm != nil && helm.ReleaseName == "" && len(r.Name) > MaxHelmReleaseName {
		errs = append(errs, field.Required(field.NewPath("spec", "content", "helm", "releaseName"),
			fmt.Sprintf("the Release's own name has more than the %d characters that Helm allows", MaxHelmReleaseName)))
	}
	return errs
}

// ReleaseSpec checks a spec, with the defaults filled in.
func ReleaseSpec(s *v1alpha1.ReleaseSpec, p *field.Path) field.ErrorList {
	errs := clusterName(s.ClusterRef.Name, p.Child("clusterRef", "name"))

	errs = append(errs, releaseSource(&s.Source, p.Child("source"))...)
	errs = append(errs, content(s, p.Child("content"))...)
	if s.TargetNamespace != "" {
		errs = append(errs, requiredName(s.TargetNamespace, p.Child("targetNamespace"), apivalidation.ValidateNamespaceName)...)
	}
	errs = append(errs, mutations(s.Mutations, p.Child("mutations"))...)
	errs = append(errs, images(&s.Images, p.Child("images"))...)
	errs = append(errs, lifecycle(&s.Lifecycle, p.Child("lifecycle"))...)
	errs = append(errs, precedence(s, p)...)
	errs = append(errs, serviceAccount(s.ServiceAccountName, p.Child("serviceAccountName"))...)
	errs = append(errs, drift(&s.Drift, p.Child("drift"))...)
	errs = append(errs, health(&s.Health, p.Child("health"))...)

	sync := p.Child("syncPolicy")
	errs = append(errs, duration(s.SyncPolicy.Interval, sync.Child("interval"), MinReleaseInterval, MaxInterval)...)
	errs = append(errs, duration(s.SyncPolicy.Timeout, sync.Child("timeout"), MinReleaseTimeout, MaxTimeout)...)
	errs = append(errs, deletions(&s.SyncPolicy, sync)...)
	errs = append(errs, retry(&s.SyncPolicy.Retry, sync.Child("retry"))...)
	errs = append(errs, enum(s.SyncPolicy.Conflicts, sync.Child("conflicts"), v1alpha1.ConflictsFail, v1alpha1.ConflictsForce)...)
	return append(errs, enum(s.SyncPolicy.Immutable, sync.Child("immutable"), v1alpha1.ImmutableReport, v1alpha1.ImmutableReplace)...)
}

// ReleaseUpdate checks a change of the main resource.
func ReleaseUpdate(r, old *v1alpha1.Release) field.ErrorList {
	errs := apivalidation.ValidateObjectMetaUpdate(&r.ObjectMeta, &old.ObjectMeta, field.NewPath("metadata"))
	errs = append(errs, apivalidation.ValidateImmutableField(r.Spec.ClusterRef.Name, old.Spec.ClusterRef.Name, field.NewPath("spec", "clusterRef", "name"))...)
	if old.DeletionTimestamp != nil && old.Spec.DeletionPolicy.KeepWorkloads && !r.Spec.DeletionPolicy.KeepWorkloads {
		// A deletion that keeps the workloads is not counted against the budget.
		errs = append(errs, field.Forbidden(field.NewPath("spec", "deletionPolicy", "keepWorkloads"), "cannot be turned off while the Release is being deleted"))
	}
	return append(errs, Release(r)...)
}

// ReleaseStatusUpdate checks a change of the status: it stays of constant size.
func ReleaseStatusUpdate(r, old *v1alpha1.Release) field.ErrorList {
	errs := apivalidation.ValidateObjectMetaUpdate(&r.ObjectMeta, &old.ObjectMeta, field.NewPath("metadata"))
	status := field.NewPath("status")
	if n := len(r.Status.Exceptions); n > MaxExceptions {
		errs = append(errs, field.TooMany(status.Child("exceptions"), n, MaxExceptions))
	}
	if n := len(r.Status.History); n > MaxHistory {
		errs = append(errs, field.TooMany(status.Child("history"), n, MaxHistory))
	}
	if n := len(r.Status.Hooks); n > MaxHookRuns {
		errs = append(errs, field.TooMany(status.Child("hooks"), n, MaxHookRuns))
	}
	if held := r.Status.HeldPrune; held != nil && len(held.Objects) > MaxHeldObjects {
		errs = append(errs, field.TooMany(status.Child("heldPrune", "objects"), len(held.Objects), MaxHeldObjects))
	}
	return errs
}

// ReleaseInventory checks one that the hub is about to write.
func ReleaseInventory(i *v1alpha1.ReleaseInventory) field.ErrorList {
	errs := objectName(i.Name, apivalidation.NameIsDNSSubdomain)
	if n := len(i.Entries); n > MaxInventoryEntries {
		errs = append(errs, field.TooMany(field.NewPath("entries"), n, MaxInventoryEntries))
	}
	return errs
}

// ReleaseInventoryUpdate checks a change of an inventory.
func ReleaseInventoryUpdate(i, old *v1alpha1.ReleaseInventory) field.ErrorList {
	return append(apivalidation.ValidateObjectMetaUpdate(&i.ObjectMeta, &old.ObjectMeta, field.NewPath("metadata")), ReleaseInventory(i)...)
}

// SyncRequest checks a request for a sync of the named Release, and drops from it what
// only an answer has.
func SyncRequest(s *v1alpha1.SyncRequest, release string) field.ErrorList {
	errs := requestName(s.Name, release, "Release")
	s.RequestedAt = ""
	c := s.ConfirmDeletions
	if c == nil {
		return errs
	}
	p := field.NewPath("confirmDeletions")
	if c.Sequence <= 0 {
		errs = append(errs, field.Invalid(p.Child("sequence"), c.Sequence, "that of status.heldPrune"))
	}
	if c.Digest == "" {
		errs = append(errs, field.Required(p.Child("digest"), "that of status.heldPrune"))
	} else if len(c.Digest) > MaxDigest || strings.Contains(c.Digest, "/") {
		errs = append(errs, field.Invalid(p.Child("digest"), "", "that of status.heldPrune"))
	}
	return errs
}

// ConfirmRequest checks a confirmation of the deletion of the named object, and
// drops from it what only an answer has.
func ConfirmRequest(c *v1alpha1.ConfirmRequest, object string) field.ErrorList {
	c.ExpiresAt = nil
	errs := requestName(c.Name, object, "object")
	if c.Sequence < 0 {
		errs = append(errs, field.Invalid(field.NewPath("sequence"), c.Sequence, "that of status.heldDeletion"))
	}
	if c.Digest == "" {
		errs = append(errs, field.Required(field.NewPath("digest"), "that of status.heldDeletion"))
	} else if len(c.Digest) > MaxDigest {
		errs = append(errs, field.TooLong(field.NewPath("digest"), "", MaxDigest))
	}
	return errs
}
