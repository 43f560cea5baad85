package config

import (
	"github.com/drawbridge-mcp/drawbridge/internal/configfile"
)

// VectorStoreSettings configures the store for vectors of tools.
type VectorStoreSettings struct {
	// Store is a URL, resolved when it is first needed; a resolved reference is escaped in it. An empty Store means the
	// store of all other data.
	Store []ValuePart
	// Collection is the name of the table or the prefix of collections there; empty means the default.
	Collection string
}

// vectorSettingTable are the members of [mcp.tool_discovery] about the store for vectors.
var vectorSettingTable = []setting{
	{"mcp.tool_discovery", "vector_store", "postgres://, qdrant:// or qdrants:// URL", "the store",
		"the store for vectors of tools: a database with pgvector, or the gRPC port of a Qdrant server; qdrants uses TLS, with KEY@ before the host; variables and references are resolved",
		func(r *settingsReader, v configfile.Node) error {
			return r.readURLParts(&r.settings.Vectors.Store, v, "a postgres://, qdrant:// or qdrants:// URL",
				"postgres", "postgresql", "qdrant", "qdrants")
		}},
	{"mcp.tool_discovery", "collection", "name", "drawbridge_tools",
		"the name of the table in vector_store, or the prefix of its collections",
		func(r *settingsReader, v configfile.Node) error {
			return readCollectionName(&r.settings.Vectors.Collection, v)
		}},
}
