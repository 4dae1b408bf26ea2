package engine

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/causeway-mirror/causeway/cluster"
)

// Certificates tells when our own certificates end. They are read when that is asked, since files are replaced under us.
type Certificates struct {
	clusters []cluster.Config
	ends     *prometheus.Desc
}

// NewCertificates watches the certificates of clusters.
func NewCertificates(routeName string, clusters ...cluster.Config) *Certificates {
	return &Certificates{clusters: clusters, ends: prometheus.NewDesc("causeway_certificate_expiry_seconds",
		"Seconds until our own certificate for a cluster ends; negative once it has.", []string{"cluster"}, prometheus.Labels{"route": routeName})}
}

// Describe names the gauge.
func (c *Certificates) Describe(ch chan<- *prometheus.Desc) { ch <- c.ends }

// Collect leaves out clusters without a certificate of ours, and those whose files can't be read just now.
func (c *Certificates) Collect(ch chan<- prometheus.Metric) {
	for i := range c.clusters {
		if end, err := c.clusters[i].CertificateExpiry(); err == nil && !end.IsZero() {
			ch <- prometheus.MustNewConstMetric(c.ends, prometheus.GaugeValue, time.Until(end).Seconds(), c.clusters[i].Name)
		}
	}
}
