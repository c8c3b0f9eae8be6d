// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"context"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"

	"kumodo.io/convoy/api/core/v1alpha1"
)

// verb is what backup and restore share.
type verb struct{ backup Backup }

// Destroy implements rest.Storage.
func (verb) Destroy() {}

// check refuses what neither verb can do.
func (v verb) check(name string) error {
	if name != v1alpha1.HubName {
		return apierrors.NewNotFound(v1alpha1.Resource("hubs"), name)
	}
	if v.backup == nil {
		return apierrors.NewServiceUnavailable("the hub has not opened its stores yet")
	}
	return nil
}

// BackupREST serves hubs/backup. It is a create of a small request, like all verbs:
// each answer is short, so that a slow line only makes more of them.
type BackupREST struct{ verb }

// RestoreREST serves hubs/restore.
type RestoreREST struct{ verb }

var (
	_ rest.NamedCreater = &BackupREST{}
	_ rest.Storage      = &BackupREST{}
	_ rest.NamedCreater = &RestoreREST{}
	_ rest.Storage      = &RestoreREST{}
)

// NewBackupREST makes it.
func NewBackupREST(o Options) *BackupREST { return &BackupREST{verb{o.Backup}} }

// NewRestoreREST makes it.
func NewRestoreREST(o Options) *RestoreREST { return &RestoreREST{verb{o.Backup}} }

// New implements rest.Storage.
func (*BackupREST) New() runtime.Object { return &v1alpha1.BackupRequest{} }

// New implements rest.Storage.
func (*RestoreREST) New() runtime.Object { return &v1alpha1.RestoreRequest{} }

// Create answers with the pieces at a cursor.
func (r *BackupREST) Create(ctx context.Context, name string, obj runtime.Object, validate rest.ValidateObjectFunc, _ *metav1.CreateOptions) (runtime.Object, error) {
	in, ok := obj.(*v1alpha1.BackupRequest)
	if !ok {
		return nil, apierrors.NewBadRequest("the body must be a BackupRequest")
	}
	if err := r.check(name); err != nil {
		return nil, err
	}
	answer := &v1alpha1.BackupRequest{ObjectMeta: metav1.ObjectMeta{Name: name}, Cursor: in.Cursor}
	if err := admit(ctx, validate, answer); err != nil {
		return nil, err
	}
	var err error
	if answer.Pieces, answer.Next, err = r.backup.Read(ctx, in.Cursor); err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	return answer, nil
}

// Create writes pieces; with dry run it only looks at the request.
func (r *RestoreREST) Create(ctx context.Context, name string, obj runtime.Object, validate rest.ValidateObjectFunc, options *metav1.CreateOptions) (runtime.Object, error) {
	in, ok := obj.(*v1alpha1.RestoreRequest)
	if !ok {
		return nil, apierrors.NewBadRequest("the body must be a RestoreRequest")
	}
	if err := r.check(name); err != nil {
		return nil, err
	}
	if in.Backup == "" || in.HubID == "" {
		return nil, apierrors.NewBadRequest("backup and hubID are required: the digest that names the backup, and the hub that it was taken of")
	}
	answer := &v1alpha1.RestoreRequest{ObjectMeta: metav1.ObjectMeta{Name: name}, Backup: in.Backup, HubID: in.HubID, Last: in.Last}
	if err := admit(ctx, validate, answer); err != nil {
		return nil, err
	}
	if len(options.DryRun) > 0 {
		return answer, nil
	}
	if in.Last {
		who := "unknown"
		if user, ok := request.UserFrom(ctx); ok {
			who = user.GetName()
		}
		logr.FromContextOrDiscard(ctx).Info("A backup was restored", "backup", in.Backup, "user", who)
	}
	if err := r.backup.Write(ctx, in.HubID, in.Backup, in.Pieces, in.Last); err != nil {
		return nil, apierrors.NewConflict(v1alpha1.Resource("hubs"), name, err)
	}
	return answer, nil
}

// admit runs the validating admission of the host on the request, without its data.
func admit(ctx context.Context, validate rest.ValidateObjectFunc, object runtime.Object) error {
	if validate == nil {
		return nil
	}
	return validate(ctx, object.DeepCopyObject())
}
