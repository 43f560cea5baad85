package config

import (
	"github.com/drawbridge-mcp/drawbridge/internal/configfile"
)

// VectorStoreSettings configures the store for vectors of tools.
type VectorStoreSettings struct {
	// Store is a URL, resolved when it is first needed; a resolved reference is escaped in it. An empty Store means the
	// store of all other data.
	Store []ValuePart
	// Collection is the name that they are kept under elsewhere; empty means the default.
	Collection string
}

// vectorSettingTable are the members of [mcp.tool_discovery] that say where vectors are kept.
var vectorSettingTable = []setting{
	{"mcp.tool_discovery", "vector_store", "postgres://, qdrant:// or qdrants:// URL", "the store",
		"where the vectors of tools are kept: a database with pgvector, or the gRPC port of a Qdrant server, the last with TLS and KEY@ before the host; values are put in",
		func(r *settingsReader, v configfile.Node) error {
			return r.readURLParts(&r.settings.Vectors.Store, v, "a postgres://, qdrant:// or qdrants:// URL",
				"postgres", "postgresql", "qdrant", "qdrants")
		}},
	{"mcp.tool_discovery", "collection", "name", "drawbridge_tools",
		"what they are kept under there: the table, or how the names of collections begin",
		func(r *settingsReader, v configfile.Node) error {
			return readCollectionName(&r.settings.Vectors.Collection, v)
		}},
}
