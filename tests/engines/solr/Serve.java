import org.apache.solr.client.solrj.embedded.JettyConfig;
import org.apache.solr.client.solrj.embedded.JettySolrRunner;

/** Starts Solr with the given home on a free port of 127.0.0.1, prints its address, and stops at the end of input. */
public class Serve {
  public static void main(String[] arguments) throws Exception {
    JettyConfig config = JettyConfig.builder().setContext("/solr").setPort(0).build();
    JettySolrRunner solr = new JettySolrRunner(arguments[0], config);
    solr.start();
    System.out.println(solr.getBaseUrl());
    while (System.in.read() >= 0) {}
    solr.stop();
    System.exit(0);
  }
}
