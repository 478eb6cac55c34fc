import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import org.opensearch.common.settings.Settings;
import org.opensearch.http.HttpServerTransport;
import org.opensearch.node.InternalSettingsPreparer;
import org.opensearch.node.Node;
import org.opensearch.painless.PainlessPlugin;
import org.opensearch.transport.Netty4Plugin;

/** Starts a node of OpenSearch in a folder on 127.0.0.1, prints its address, and stops at the end of input. */
public class Serve extends Node {
  Serve(Settings settings, Path folder) {
    super(
        InternalSettingsPreparer.prepareEnvironment(settings, Map.of(), folder, () -> "shop"),
        List.of(Netty4Plugin.class, PainlessPlugin.class),
        true);
  }

  public static void main(String[] arguments) throws Exception {
    Settings settings = Settings.builder()
        .put("path.home", arguments[0])
        .put("network.host", "127.0.0.1")
        .put("http.port", "0")
        .put("transport.port", "0")
        .put("transport.type", Netty4Plugin.NETTY_TRANSPORT_NAME)
        .put("http.type", Netty4Plugin.NETTY_HTTP_TRANSPORT_NAME)
        .put("discovery.type", "single-node")
        .put("cluster.routing.allocation.disk.threshold_enabled", false)
        .build();
    Node node = new Serve(settings, Path.of(arguments[0])).start();
    var http = node.injector().getInstance(HttpServerTransport.class);
    System.out.println("http://" + http.boundAddress().publishAddress());
    while (System.in.read() >= 0) {}
    node.close();
    System.exit(0);
  }
}
