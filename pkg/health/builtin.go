// SPDX-License-Identifier: Apache-2.0

package health

// builtin are the rules for kinds that conventions do not tell the truth of.
var builtin = map[groupKind]func(object) Verdict{}
