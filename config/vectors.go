package config

import (
	"github.com/drawbridge-mcp/drawbridge/internal/configfile"
)

// VectorStoreSettings says where the vectors of tools are kept.
type VectorStoreSettings struct {
	// Store is a URL, put together when it is first needed; what is found for a reference is escaped there. None is
	// the store.
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
