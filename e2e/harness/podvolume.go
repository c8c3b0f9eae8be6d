// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// fileMode is that of files of Secrets and ConfigMaps by default.
	fileMode = 0o644
	// tokenMode is that of a ServiceAccount token.
	tokenMode = 0o600
)

// volumes are the folders of one Pod on this machine. They are owned by the
// goroutine that runs the Pod.
type volumes struct {
	run *Pod
	pod *corev1.Pod
	dir string

	// Static: who reads the files.
	uid, gid int
	// due says, by path, when a token must be asked for again.
	due map[string]time.Time
}

func (pod *Pod) volumesOf(object *corev1.Pod) *volumes {
	v := &volumes{run: pod, pod: object, dir: filepath.Join(pod.dir, string(object.UID)), gid: -1, due: map[string]time.Time{}}
	if len(object.Spec.Containers) > 0 {
		uid, _, _ := identity(object, &object.Spec.Containers[0], pod.opts)
		v.uid = int(uid)
	}
	if sc := object.Spec.SecurityContext; sc != nil && sc.FSGroup != nil {
		v.gid = int(*sc.FSGroup)
	}
	return v
}

// checkVolume refuses kinds of volumes that are not made here.
func checkVolume(v corev1.Volume) error {
	switch {
	case v.Secret != nil, v.ConfigMap != nil, v.EmptyDir != nil, v.DownwardAPI != nil, v.PersistentVolumeClaim != nil:
		return nil
	case v.Projected != nil:
		for _, s := range v.Projected.Sources {
			if s.Secret == nil && s.ConfigMap == nil && s.DownwardAPI == nil && s.ServiceAccountToken == nil {
				return unsupported("a source of projected volume %s", v.Name)
			}
		}
		return nil
	default:
		return unsupported("volume %s", v.Name)
	}
}

// path is the folder of a volume. That of a claim is kept when the Pod goes.
func (v *volumes) path(vol corev1.Volume) string {
	if c := vol.PersistentVolumeClaim; c != nil {
		return filepath.Join(v.run.plane.sup.Dir(), "claims", v.pod.Namespace, c.ClaimName)
	}
	return filepath.Join(v.dir, vol.Name)
}

// source gives what is mounted for a mount.
func (v *volumes) source(m corev1.VolumeMount) (string, error) {
	for _, vol := range v.pod.Spec.Volumes {
		if vol.Name != m.Name {
			continue
		}
		path := filepath.Join(v.path(vol), filepath.Join("/", m.SubPath))
		if m.SubPath == "" {
			return path, nil
		}
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
			if err := v.folder(path); err != nil {
				return "", err
			}
		}
		return path, nil
	}
	return "", fmt.Errorf("mount %s: no such volume", m.Name)
}

// write makes all folders and brings their files up to date.
func (v *volumes) write(ctx context.Context) error {
	if err := os.MkdirAll(filepath.Join(v.run.dir, "root"), 0o700); err != nil {
		return fmt.Errorf("make root: %w", err)
	}
	for _, vol := range v.pod.Spec.Volumes {
		if err := v.writeVolume(ctx, vol); err != nil {
			return fmt.Errorf("volume %s: %w", vol.Name, err)
		}
	}
	return nil
}

func (v *volumes) writeVolume(ctx context.Context, vol corev1.Volume) error {
	dir := v.path(vol)
	switch {
	case vol.EmptyDir != nil, vol.PersistentVolumeClaim != nil:
		if _, err := os.Stat(dir); err == nil {
			return nil
		}
		return v.folder(dir)
	case vol.Secret != nil:
		return v.writeSecret(ctx, dir, vol.Secret.SecretName, vol.Secret.Items, vol.Secret.Optional, mode(vol.Secret.DefaultMode))
	case vol.ConfigMap != nil:
		return v.writeConfigMap(ctx, dir, vol.ConfigMap.Name, vol.ConfigMap.Items, vol.ConfigMap.Optional, mode(vol.ConfigMap.DefaultMode))
	case vol.DownwardAPI != nil:
		return v.writeDownward(dir, vol.DownwardAPI.Items, mode(vol.DownwardAPI.DefaultMode))
	case vol.Projected != nil:
		return v.writeProjected(ctx, dir, vol.Projected)
	default:
		return unsupported("kind of volume")
	}
}

func (v *volumes) writeProjected(ctx context.Context, dir string, vol *corev1.ProjectedVolumeSource) error {
	perm := mode(vol.DefaultMode)
	for _, s := range vol.Sources {
		var err error
		switch {
		case s.ServiceAccountToken != nil:
			err = v.writeToken(ctx, dir, s.ServiceAccountToken)
		case s.Secret != nil:
			err = v.writeSecret(ctx, dir, s.Secret.Name, s.Secret.Items, s.Secret.Optional, perm)
		case s.ConfigMap != nil:
			err = v.writeConfigMap(ctx, dir, s.ConfigMap.Name, s.ConfigMap.Items, s.ConfigMap.Optional, perm)
		case s.DownwardAPI != nil:
			err = v.writeDownward(dir, s.DownwardAPI.Items, perm)
		default:
			err = unsupported("source of a projected volume")
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// writeToken asks for a token of the Pod's ServiceAccount, bound to the Pod as
// a kubelet's are, when there is none or four fifths of its life are over.
func (v *volumes) writeToken(ctx context.Context, dir string, src *corev1.ServiceAccountTokenProjection) error {
	path := filepath.Join(dir, src.Path)
	if time.Now().Before(v.due[path]) {
		return nil
	}
	seconds := int64(tokenSeconds)
	set(&seconds, src.ExpirationSeconds)
	req := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		ExpirationSeconds: &seconds,
		BoundObjectRef: &authenticationv1.BoundObjectReference{
			APIVersion: "v1", Kind: "Pod", Name: v.pod.Name, UID: v.pod.UID,
		},
	}}
	if src.Audience != "" {
		req.Spec.Audiences = []string{src.Audience}
	}
	asked := time.Now()
	got, err := v.run.plane.client.CoreV1().ServiceAccounts(v.pod.Namespace).CreateToken(ctx, v.pod.Spec.ServiceAccountName, req, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("request token: %w", err)
	}
	if err := v.file(path, []byte(got.Status.Token), tokenMode); err != nil {
		return err
	}
	v.due[path] = asked.Add(got.Status.ExpirationTimestamp.Sub(asked) * 4 / 5)
	return nil
}

func (v *volumes) writeSecret(ctx context.Context, dir, name string, items []corev1.KeyToPath, optional *bool, perm fs.FileMode) error {
	data, err := v.run.secret(ctx, v.pod.Namespace, name, optional)
	if err != nil {
		return err
	}
	return v.keys(dir, data, items, optional, perm)
}

func (v *volumes) writeConfigMap(ctx context.Context, dir, name string, items []corev1.KeyToPath, optional *bool, perm fs.FileMode) error {
	data, err := v.run.configMap(ctx, v.pod.Namespace, name, optional)
	if err != nil {
		return err
	}
	return v.keys(dir, data, items, optional, perm)
}

func (v *volumes) writeDownward(dir string, items []corev1.DownwardAPIVolumeFile, perm fs.FileMode) error {
	if err := v.folder(dir); err != nil {
		return err
	}
	for _, item := range items {
		if item.FieldRef == nil {
			return unsupported("downward API without fieldRef")
		}
		value, err := field(v.pod, item.FieldRef.FieldPath)
		if err != nil {
			return err
		}
		if err := v.file(filepath.Join(dir, item.Path), []byte(value), perm); err != nil {
			return err
		}
	}
	return nil
}

// keys writes the keys of a Secret or ConfigMap, all or those of items.
func (v *volumes) keys(dir string, data map[string][]byte, items []corev1.KeyToPath, optional *bool, perm fs.FileMode) error {
	if err := v.folder(dir); err != nil {
		return err
	}
	if len(items) == 0 {
		for k, value := range data {
			if err := v.file(filepath.Join(dir, k), value, perm); err != nil {
				return err
			}
		}
		return nil
	}
	for _, item := range items {
		value, ok := data[item.Key]
		if !ok {
			if optional != nil && *optional {
				continue
			}
			return fmt.Errorf("no key %s", item.Key)
		}
		p := perm
		if item.Mode != nil {
			p = mode(item.Mode)
		}
		if err := v.file(filepath.Join(dir, item.Path), value, p); err != nil {
			return err
		}
	}
	return nil
}

// folder makes a folder that everybody in the container may use.
func (v *volumes) folder(dir string) error {
	if _, err := os.Stat(dir); err == nil {
		return nil
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return fmt.Errorf("make folder: %w", err)
	}
	if err := os.Chmod(dir, 0o777|fs.ModeSetgid); err != nil {
		return fmt.Errorf("make folder: %w", err)
	}
	if err := os.Chown(dir, -1, v.gid); err != nil {
		return fmt.Errorf("make folder: %w", err)
	}
	return nil
}

// file replaces a file in one step when its content differs.
func (v *volumes) file(path string, content []byte, perm fs.FileMode) error {
	if old, err := os.ReadFile(path); err == nil && bytes.Equal(old, content) {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("write file: %w", err)
	}
	owner := -1
	if perm == tokenMode {
		owner = v.uid
	} else if v.gid >= 0 {
		perm |= perm & 0o400 >> 3 // a volume's group may read what its owner may
	}
	next := filepath.Join(filepath.Dir(path), ".next-"+filepath.Base(path))
	err := os.WriteFile(next, content, 0o600)
	if err == nil {
		err = os.Chown(next, owner, v.gid)
	}
	if err == nil {
		err = os.Chmod(next, perm)
	}
	if err == nil {
		err = os.Rename(next, path)
	}
	if err != nil {
		return fmt.Errorf("write file: %w", err)
	}
	return nil
}

func mode(m *int32) fs.FileMode {
	if m == nil {
		return fileMode
	}
	return fs.FileMode(*m) & fs.ModePerm
}

// absent lets an object be missing that is optional.
func absent(err error, what string, optional *bool) error {
	if optional != nil && *optional && apierrors.IsNotFound(err) {
		return nil
	}
	return fmt.Errorf("%s: %w", strings.TrimSpace(what), err)
}
