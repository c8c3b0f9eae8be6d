// SPDX-License-Identifier: Apache-2.0

package scheme

import "k8s.io/apimachinery/pkg/runtime"

// JSONOnly wraps a serializer so that it offers JSON and YAML and nothing else.
//
// The host's namespace controller asks for protobuf first. Our lists cannot be
// written as protobuf, so a server that offers it answers with an error, and no
// namespace of the host can be deleted any more, not even an empty one.
func JSONOnly(s runtime.NegotiatedSerializer) runtime.NegotiatedSerializer {
	return jsonOnly{NegotiatedSerializer: s}
}

type jsonOnly struct {
	runtime.NegotiatedSerializer
}

// SupportedMediaTypes leaves out all that is not text.
func (j jsonOnly) SupportedMediaTypes() []runtime.SerializerInfo {
	var text []runtime.SerializerInfo
	for _, info := range j.NegotiatedSerializer.SupportedMediaTypes() {
		if info.MediaType == runtime.ContentTypeJSON || info.MediaType == runtime.ContentTypeYAML {
			text = append(text, info)
		}
	}
	return text
}
