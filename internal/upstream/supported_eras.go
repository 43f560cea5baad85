package upstream

import (
	"encoding/json"
	"errors"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
	"github.com/drawbridge-mcp/drawbridge/internal/transport"
)

// supportedEras returns the protocol eras that both server and Drawbridge support. result is the result of
// server/discover.
func supportedEras(result json.RawMessage) (era drawbridge.ProtocolEra) {
	for v := range rawjson.Elements(rawjson.Get(result, "supportedVersions")) {
		version, _ := rawjson.DecodeString(v)
		if mcp.EraOf(version) == drawbridge.Legacy || version == mcp.Version20260728 {
			era |= mcp.EraOf(version)
		}
	}
	return era
}

// offersModernVersion reports whether the server refused the protocol version of a request, but lists Drawbridge's
// version as supported. A client then selects a version from that list and repeats the request (2026-07-28,
// Versioning).
func offersModernVersion(err error) bool {
	refused, ok := errors.AsType[*transport.ResponseError](err)
	if !ok || mcp.ErrorCode(refused.Object) != mcp.CodeUnsupportedVersion {
		return false
	}
	for v := range rawjson.Elements(rawjson.Get(refused.Object, "data", "supported")) {
		if version, _ := rawjson.DecodeString(v); version == mcp.Version20260728 {
			return true
		}
	}
	return false
}
