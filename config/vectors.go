package config

import (
	"github.com/drawbridge-mcp/drawbridge/internal/configfile"
)

// VectorStoreSettings configures the store for vectors of tools.
type VectorStoreSettings struct {
	// Store is the URL of the store as parts, which are resolved when the store is first needed. The text of a resolved
	// reference is escaped for use in a URL. If Store is empty, the vectors are in the store of all other data.
	Store []ValuePart
	// Collection is the name of the table, or the prefix of the collections, in Store; empty means the default.
	Collection string
}

// vectorSettingTable contains the settings in [mcp.tool_discovery] for the vector store.
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
