// SPDX-License-Identifier: Apache-2.0

package helm

import "errors"

// Sentinels. Errors that wrap them name chart and file.
var (
	// ErrChart: what stands at the path is not a chart that can be rendered.
	ErrChart = errors.New("is not a chart that can be rendered")
	// ErrArchive: an archive of a chart that is not one, or holds what none may hold.
	ErrArchive = errors.New("is not a chart archive that can be read")
	// ErrTooLarge: a limit of a chart.
	ErrTooLarge = errors.New("too large")
	// ErrDependency: a chart that Chart.yaml names is not in charts/.
	ErrDependency = errors.New("a dependency of the chart is missing")
	// ErrKubeVersion: the chart is not for the cluster's version.
	ErrKubeVersion = errors.New("the chart is not for this version of Kubernetes")
	// ErrValues: values that cannot be read or merged.
	ErrValues = errors.New("the values cannot be used")
	// ErrSchema: values that do not fit values.schema.json, or a schema that cannot
	// be used.
	ErrSchema = errors.New("the values do not fit the schema")
	// ErrTemplate: a template failed.
	ErrTemplate = errors.New("a template failed")
	// ErrHook: a hook's annotations cannot be read.
	ErrHook = errors.New("a hook cannot be understood")
)
