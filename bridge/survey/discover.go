package survey

import (
	"encoding/json"
	"errors"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/bridge/link"
	"github.com/drawbridge-mcp/drawbridge/wire"
)

// ErasOf gives what a server speaks of what we do, by its answer to a discovery.
func ErasOf(result json.RawMessage) (era drawbridge.Era) {
	for v := range wire.Elements(wire.Get(result, "supportedVersions")) {
		version, _ := wire.Text(v)
		if wire.EraOf(version) == drawbridge.Legacy || version == wire.Version20260728 {
			era |= wire.EraOf(version)
		}
	}
	return era
}

// OffersModern says whether a server refused the version of a request and names ours among those it supports: a client
// chooses from that list and asks again (2026-07-28, Versioning).
func OffersModern(err error) bool {
	refused, ok := errors.AsType[*link.ReplyError](err)
	if !ok || wire.ErrorCode(refused.Object) != wire.CodeUnsupportedVersion {
		return false
	}
	for v := range wire.Elements(wire.Get(refused.Object, "data", "supported")) {
		if version, _ := wire.Text(v); version == wire.Version20260728 {
			return true
		}
	}
	return false
}
