// SPDX-License-Identifier: Apache-2.0

package harness

// Component names one of the processes of a plane.
type Component string

// The components, in the order in which they start.
const (
	Etcd              Component = "etcd"
	APIServer         Component = "kube-apiserver"
	ControllerManager Component = "kube-controller-manager"
	Scheduler         Component = "kube-scheduler"
	Kwok              Component = "kwok"
)

// Identities and user agents of the harness itself, so that an audit log can
// be read without it.
const (
	// AdminUser and AdminGroup are who the kubeconfig of a plane is.
	AdminUser  = "convoy-test-admin"
	AdminGroup = "convoy-test:admins"
	// BootstrapUser makes the binding of AdminGroup, once, as a member of
	// system:masters. Its user agent is BootstrapAgent.
	BootstrapUser  = "convoy-test-bootstrap"
	BootstrapAgent = "convoy-harness-bootstrap"
	// UserAgent is that of every other request of the harness.
	UserAgent = "convoy-harness"
	// KwokUser is who kwok is.
	KwokUser = "convoy-test-kwok"
)

const (
	// NodeName is the name of the node that kwok keeps Ready.
	NodeName = "node-0"
	// StorageClass is the default one; kwok binds the claims that use it.
	StorageClass = "kwok-volume"
)

// Options of a plane. The zero value is a whole control plane that writes to
// disk as a real one does.
type Options struct {
	// Name is for messages and contexts of kubeconfigs; "plane" when empty.
	Name string
	// Dir is the parent of the plane's folder; the system's folder for
	// temporary files when empty.
	Dir string

	// Without leaves components out; etcd and kube-apiserver cannot be.
	// Leaving out the controller manager leaves out ServiceAccounts of
	// namespaces, garbage collection and the end of namespaces as well.
	Without []Component

	// UnsafeNoFsync makes etcd never wait for the disk. For tests only; a
	// plane that is measured must leave it false.
	UnsafeNoFsync bool

	// APIServerArgs and ControllerManagerArgs are added after the harness's
	// own arguments, so that the last of two wins.
	APIServerArgs         []string
	ControllerManagerArgs []string
}

func (o Options) has(c Component) bool {
	for _, w := range o.Without {
		if w == c {
			return false
		}
	}
	return true
}
