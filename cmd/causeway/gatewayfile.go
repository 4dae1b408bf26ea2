package main

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/causeway-mirror/causeway/internal/conf"
	"github.com/causeway-mirror/causeway/internal/native"
)

// gatewayFile is what --config of the gateway may hold: its flags, with _ in place of -.
type gatewayFile struct {
	Upstream         []string       `yaml:"upstream"`
	UpstreamConfig   *string        `yaml:"upstream_config"`
	Listen           *string        `yaml:"listen"`
	Advertise        *string        `yaml:"advertise"`
	PortRange        *string        `yaml:"port_range"`
	BrokerNames      *string        `yaml:"broker_names"`
	TLSCert          *string        `yaml:"tls_cert"`
	TLSKey           *string        `yaml:"tls_key"`
	TLSClientCA      *string        `yaml:"tls_client_ca"`
	MaxConnections   *int           `yaml:"max_connections"`
	PerAddress       *int           `yaml:"max_connections_per_address"`
	MaxConnectionsOf map[string]int `yaml:"max_connections_of"`
	MaxInFlight      *int           `yaml:"max_in_flight"`
	IdleTimeout      *conf.Duration `yaml:"idle_timeout"`
	DrainTimeout     *conf.Duration `yaml:"drain_timeout"`
	Metrics          *string        `yaml:"metrics"`
	LogLevel         *string        `yaml:"log_level"`
	LogFormat        *string        `yaml:"log_format"`
}

// readGatewayFile sets the flags that were not given to what a file says.
func readGatewayFile(path string, flags *pflag.FlagSet) error {
	var file gatewayFile
	if err := native.LoadInto(path, &file); err != nil {
		return err
	}
	all := reflect.ValueOf(file)
	for i := range all.NumField() {
		key := all.Type().Field(i).Tag.Get("yaml")
		name := strings.ReplaceAll(key, "_", "-")
		if all.Field(i).IsZero() || flags.Changed(name) {
			continue
		}
		for _, value := range flagValues(all.Field(i)) {
			if err := flags.Set(name, value); err != nil {
				return fault(key, value, err.Error())
			}
		}
	}
	return nil
}

// flagValues are what a flag is to be set to, one after the other.
func flagValues(field reflect.Value) (values []string) {
	switch given := field.Interface().(type) {
	case []string:
		return []string{strings.Join(given, ",")}
	case map[string]int:
		for _, address := range slices.Sorted(maps.Keys(given)) {
			values = append(values, address+"="+strconv.Itoa(given[address]))
		}
		return values
	case *conf.Duration:
		return []string{given.Duration().String()}
	}
	return []string{fmt.Sprint(field.Elem())}
}
