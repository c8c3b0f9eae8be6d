// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kumodo.io/convoy/e2e/harness/internal/message"
)

// defaultPath is the PATH that container runtimes give.
const defaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

func unsupported(format string, args ...any) error {
	return fmt.Errorf(format+": %w", append(args, ErrUnsupported)...)
}

// checkPod refuses what cannot be run and gives the one container.
func checkPod(pod *corev1.Pod, opts PodOptions) (*corev1.Container, error) {
	spec := &pod.Spec
	if len(spec.InitContainers) > 0 {
		return nil, unsupported("init containers")
	}
	if len(spec.Containers) != 1 {
		return nil, unsupported("%d containers", len(spec.Containers))
	}
	c := &spec.Containers[0]
	if _, ok := opts.Images[c.Image]; !ok {
		return nil, fmt.Errorf("image %s: no program given for it", c.Image)
	}
	if spec.RestartPolicy != "" && spec.RestartPolicy != corev1.RestartPolicyAlways {
		return nil, unsupported("restart policy %s", spec.RestartPolicy)
	}
	if spec.HostPID || spec.HostIPC {
		return nil, unsupported("namespaces of the host")
	}
	if len(c.EnvFrom) > 0 {
		return nil, unsupported("envFrom")
	}
	for _, m := range c.VolumeMounts {
		if m.SubPathExpr != "" {
			return nil, unsupported("subPathExpr of mount %s", m.Name)
		}
	}
	if _, err := opts.Deviations.apply(c.Args); err != nil {
		return nil, err
	}
	for _, v := range spec.Volumes {
		if err := checkVolume(v); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// container gives the order that starts the container.
func (pod *Pod) container(ctx context.Context, v *volumes) (*message.Start, error) {
	object := v.pod
	c, err := checkPod(object, pod.opts)
	if err != nil {
		return nil, err
	}
	env, err := pod.environment(ctx, object, c)
	if err != nil {
		return nil, err
	}
	program := pod.opts.Images[c.Image]
	path, args := "/"+filepath.Base(program), c.Args
	if len(c.Command) > 0 {
		path, args = c.Command[0], append(slices.Clone(c.Command[1:]), c.Args...)
		if !filepath.IsAbs(path) {
			path = filepath.Join("/", path)
		}
	}
	args = slices.Clone(args)
	for i := range args {
		args[i] = expand(args[i], env)
	}
	if args, err = pod.opts.Deviations.apply(args); err != nil {
		return nil, err
	}
	mounts := []message.Mount{{From: program, To: path, ReadOnly: true}}
	for _, to := range slices.Sorted(maps.Keys(pod.opts.Files)) {
		mounts = append(mounts, message.Mount{From: pod.opts.Files[to], To: to, ReadOnly: true})
	}
	// A mount inside another one comes after it.
	for _, m := range slices.SortedFunc(slices.Values(c.VolumeMounts), func(a, b corev1.VolumeMount) int {
		return strings.Compare(a.MountPath, b.MountPath)
	}) {
		from, err := v.source(m)
		if err != nil {
			return nil, err
		}
		mounts = append(mounts, message.Mount{From: from, To: m.MountPath, ReadOnly: m.ReadOnly})
	}
	start := &message.Start{
		Name: pod.opts.Deployment, Log: pod.Log(), Dir: "/",
		Pod: &message.Pod{
			Hostname: object.Name, Root: filepath.Join(pod.dir, "root"), WorkDir: c.WorkingDir,
			Path: path, Args: args, Mounts: mounts, Network: pod.opts.Network,
		},
	}
	for _, name := range slices.Sorted(maps.Keys(env)) {
		start.Pod.Env = append(start.Pod.Env, name+"="+env[name])
	}
	return start, pod.security(object, c, start.Pod)
}

// security carries over what of the security contexts is acted on.
func (pod *Pod) security(object *corev1.Pod, c *corev1.Container, m *message.Pod) error {
	uid, gid, nonRoot := identity(object, c, pod.opts)
	if nonRoot && uid == 0 {
		return fmt.Errorf("container %s has runAsNonRoot and would run as root", c.Name)
	}
	m.UID, m.GID = int(uid), int(gid)
	if sc := object.Spec.SecurityContext; sc != nil {
		if sc.FSGroup != nil {
			m.Groups = append(m.Groups, int(*sc.FSGroup))
		}
		for _, g := range sc.SupplementalGroups {
			m.Groups = append(m.Groups, int(g))
		}
	}
	sc := c.SecurityContext
	if sc == nil {
		return nil
	}
	m.ReadOnlyRoot = sc.ReadOnlyRootFilesystem != nil && *sc.ReadOnlyRootFilesystem
	m.NoNewPrivileges = sc.AllowPrivilegeEscalation != nil && !*sc.AllowPrivilegeEscalation
	if caps := sc.Capabilities; caps != nil {
		if len(caps.Add) > 0 {
			return unsupported("added capabilities %v", caps.Add)
		}
		m.DropCapabilities = slices.Contains(caps.Drop, "ALL")
		if len(caps.Drop) > 0 && !m.DropCapabilities {
			return unsupported("dropped capabilities %v, other than ALL", caps.Drop)
		}
	}
	return nil
}

// identity gives user and group of the container.
func identity(object *corev1.Pod, c *corev1.Container, opts PodOptions) (uid, gid int64, nonRoot bool) {
	uid = opts.User
	if sc := object.Spec.SecurityContext; sc != nil {
		set(&uid, sc.RunAsUser)
		set(&gid, sc.RunAsGroup)
		set(&nonRoot, sc.RunAsNonRoot)
	}
	if sc := c.SecurityContext; sc != nil {
		set(&uid, sc.RunAsUser)
		set(&gid, sc.RunAsGroup)
		set(&nonRoot, sc.RunAsNonRoot)
	}
	return uid, gid, nonRoot
}

func set[T any](to *T, from *T) {
	if from != nil {
		*to = *from
	}
}

// environment gives the variables of a container as a kubelet would, without
// those for other Services of the namespace.
func (pod *Pod) environment(ctx context.Context, object *corev1.Pod, c *corev1.Container) (map[string]string, error) {
	env := map[string]string{"PATH": defaultPath, "HOSTNAME": object.Name, "HOME": "/"}
	maps.Copy(env, pod.plane.serviceEnv())
	for _, e := range c.Env {
		value, ok, err := pod.variable(ctx, object, c, e, env)
		if err != nil {
			return nil, fmt.Errorf("variable %s: %w", e.Name, err)
		}
		if ok {
			env[e.Name] = value
		}
	}
	return env, nil
}

func (pod *Pod) variable(ctx context.Context, object *corev1.Pod, c *corev1.Container, e corev1.EnvVar, env map[string]string) (string, bool, error) {
	from := e.ValueFrom
	switch {
	case from == nil:
		return expand(e.Value, env), true, nil
	case from.FieldRef != nil:
		value, err := field(object, from.FieldRef.FieldPath)
		return value, true, err
	case from.ResourceFieldRef != nil:
		value, err := limit(c, from.ResourceFieldRef)
		return value, true, err
	case from.SecretKeyRef != nil:
		ref := from.SecretKeyRef
		data, err := pod.secret(ctx, object.Namespace, ref.Name, ref.Optional)
		if err != nil {
			return "", false, err
		}
		value, ok := data[ref.Key]
		return pick(string(value), ok, ref.Key, ref.Optional)
	case from.ConfigMapKeyRef != nil:
		ref := from.ConfigMapKeyRef
		data, err := pod.configMap(ctx, object.Namespace, ref.Name, ref.Optional)
		if err != nil {
			return "", false, err
		}
		value, ok := data[ref.Key]
		return pick(string(value), ok, ref.Key, ref.Optional)
	default:
		return "", false, unsupported("source of the value")
	}
}

func pick(value string, ok bool, key string, optional *bool) (string, bool, error) {
	if !ok && (optional == nil || !*optional) {
		return "", false, fmt.Errorf("no key %s", key)
	}
	return value, ok, nil
}

var (
	reference = regexp.MustCompile(`\$(\$|\([A-Za-z_][A-Za-z0-9_.-]*\))`)
	subscript = regexp.MustCompile(`^metadata\.(labels|annotations)\['([^']+)'\]$`)
)

// expand replaces $(NAME) by the variable, when there is one, and $$ by $.
func expand(s string, env map[string]string) string {
	return reference.ReplaceAllStringFunc(s, func(ref string) string {
		if ref == "$$" {
			return "$"
		}
		if value, ok := env[ref[2:len(ref)-1]]; ok {
			return value
		}
		return ref
	})
}

// field gives what the downward API gives for a path.
func field(pod *corev1.Pod, path string) (string, error) {
	switch path {
	case "metadata.name":
		return pod.Name, nil
	case "metadata.namespace":
		return pod.Namespace, nil
	case "metadata.uid":
		return string(pod.UID), nil
	case "spec.nodeName":
		return pod.Spec.NodeName, nil
	case "spec.serviceAccountName":
		return pod.Spec.ServiceAccountName, nil
	case "status.podIP":
		return pod.Status.PodIP, nil
	case "status.hostIP":
		return pod.Status.HostIP, nil
	}
	if m := subscript.FindStringSubmatch(path); m != nil {
		if m[1] == "labels" {
			return pod.Labels[m[2]], nil
		}
		return pod.Annotations[m[2]], nil
	}
	return "", unsupported("field %s", path)
}

// limit gives what the downward API gives for a resource, rounded up.
func limit(c *corev1.Container, ref *corev1.ResourceFieldSelector) (string, error) {
	kind, name, _ := strings.Cut(ref.Resource, ".")
	var list corev1.ResourceList
	switch kind {
	case "limits":
		list = c.Resources.Limits
	case "requests":
		list = c.Resources.Requests
	default:
		return "", unsupported("resource %s", ref.Resource)
	}
	quantity, ok := list[corev1.ResourceName(name)]
	if !ok {
		return "", unsupported("resource %s that is not set", ref.Resource)
	}
	divisor := ref.Divisor
	if divisor.IsZero() {
		divisor = resource.MustParse("1")
	}
	value, unit := quantity.MilliValue(), divisor.MilliValue()
	return strconv.FormatInt((value+unit-1)/unit, 10), nil
}

// secret and configMap read the data of an object; an optional one that is not
// there is empty.
func (pod *Pod) secret(ctx context.Context, namespace, name string, optional *bool) (map[string][]byte, error) {
	obj, err := pod.plane.client.CoreV1().Secrets(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, absent(err, "secret "+name, optional)
	}
	return obj.Data, nil
}

func (pod *Pod) configMap(ctx context.Context, namespace, name string, optional *bool) (map[string][]byte, error) {
	obj, err := pod.plane.client.CoreV1().ConfigMaps(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, absent(err, "config map "+name, optional)
	}
	data := maps.Clone(obj.BinaryData)
	if data == nil {
		data = map[string][]byte{}
	}
	for k, v := range obj.Data {
		data[k] = []byte(v)
	}
	return data, nil
}
